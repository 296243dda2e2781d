/// <reference lib="dom" />
/**
 * In the browser: the status page, drawn anew whenever the proxy has said something. It reads, and can change nothing.
 */
import { render } from 'preact';
import type { JSX } from 'preact';
import '../html/draw.js';
import { Poller, type Feed } from './feed.js';
import { ShardSection, type ShardView } from './shard.js';

const TICK_MS = 1_000;
/** Older than this, figures are no longer how things are. */
const STALE_MS = 10_000;

const root = document.getElementById('app')!;
const poller = new Poller(draw);
poller.start();
setInterval(() => draw(poller.feed), TICK_MS);

function draw(feed: Feed): void {
  document.title = titleOf(feed);
  render(<Page {...feed} now={Date.now()} />, root);
}

function titleOf({ shards, wantsToken }: Feed): string {
  const acts = shards.flatMap(({ attention }) => attention).filter(({ level }) => level === 'act').length;
  return `${acts > 0 ? `(${acts}) ` : ''}${wantsToken ? 'token? ' : ''}shadow proxy: ${shards.map(({ snapshot }) => snapshot.name).join(', ')}`;
}

function Page(feed: Feed & { now: number }): JSX.Element {
  const { shards, answeredAt, problem, wantsToken, now } = feed;
  const age = answeredAt === null ? null : now - answeredAt;
  const stale = problem !== null || (age !== null && age > STALE_MS);
  return (
    <>
      <header class="top">
        <h1>Migration status</h1>
        <span class="note" role="status">
          {age === null ? 'asking …' : `as of ${Math.max(0, Math.round(age / 1000))} s ago`}; times are UTC
        </span>
      </header>
      {wantsToken && <TokenForm refused={feed.refused} />}
      {stale && !wantsToken && (
        <p class="banner no" role="alert">
          No answer{problem === null ? '' : `: ${problem}`}. What is shown below{' '}
          {answeredAt === null ? 'is nothing yet' : 'is how it was'}.
        </p>
      )}
      {!wantsToken && answeredAt !== null && <Summary shards={shards} />}
      <div class={stale || wantsToken ? 'stale' : undefined}>
        {shards.map((view) => (
          <ShardSection key={view.snapshot.name} view={view} now={now} />
        ))}
      </div>
    </>
  );
}

/** One line that says whether to read on. */
function Summary({ shards }: { shards: readonly ShardView[] }): JSX.Element {
  const count = (level: string): number =>
    shards.flatMap(({ attention }) => attention).filter((each) => each.level === level).length;
  const [acts, looks] = [count('act'), count('look')];
  const which = acts > 0 ? 'no' : looks > 0 ? 'unknown' : 'yes';
  const where = shards
    .filter(({ attention }) => attention.some(({ level }) => level === 'act'))
    .map(({ snapshot }) => snapshot.name);
  const text =
    shards.length === 0
      ? 'No shard runs here: it is starting, or standing by.'
      : acts > 0
        ? `${acts} to act on (${where.join(', ')})`
        : looks > 0
          ? 'Nothing to act on'
          : 'Nothing to act on, nothing to look at';
  return (
    <>
      <p class={`banner ${shards.length === 0 ? 'unknown' : which}`}>
        {text}
        {looks > 0 && `, ${looks} to look at`}
      </p>
      {shards.length > 1 && (
        <nav>
          {shards.map(({ snapshot: { name } }) => (
            <>
              <a href={`#shard-${name}`}>{name}</a>{' '}
            </>
          ))}
        </nav>
      )}
    </>
  );
}

function TokenForm({ refused }: { refused: boolean }): JSX.Element {
  const give = (event: SubmitEvent): void => {
    event.preventDefault();
    const token = new FormData(event.target as HTMLFormElement).get('token');
    if (typeof token === 'string' && token.trim() !== '') poller.giveToken(token.trim());
  };
  return (
    <form class="panel token" onSubmit={give}>
      <label for="token">
        {refused ? 'That was not the admin token. ' : ''}The proxy’s admin token, kept until this tab is closed:
      </label>
      <input id="token" name="token" type="password" autocomplete="off" spellcheck={false} required />
      <button type="submit">Show the status</button>
    </form>
  );
}
