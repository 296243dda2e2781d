/// <reference lib="dom" />
/**
 * Runs in the browser: the status page, drawn again after each answer of the proxy. It changes nothing but a running
 * job.
 */
import { render } from 'preact';
import type { JSX } from 'preact';
import '../html/draw.js';
import type { NotStarted } from '../telemetry/snapshot.js';
import { Poller, type Feed } from './feed.js';
import { CommandLine, Runbook, type TypedAs } from './command.js';
import { headlineOf, titleOf, type ShardNeeds } from './headline.js';
import { JobChanger } from './job-controls.js';
import { Next, ShardSection } from './shard.js';
import { Glossary } from './term.js';

const TICK_MS = 1_000;
/** Figures that are older than this, in ms, are shown as stale. */
const STALE_MS = 10_000;

const root = document.getElementById('app')!;
/** The address at which `shadow-compare` looks for a proxy by default. */
const DEFAULT_ADMIN = 'http://127.0.0.1:9400';
const program = document.querySelector<HTMLMetaElement>('meta[name=shadow-compare]')!.content;
const admin = location.origin === DEFAULT_ADMIN ? '' : ` --admin ${location.origin}`;
const typedAs: TypedAs = (command) => `${program} ${command}${admin}`;

const poller = new Poller(draw);
poller.start();
setInterval(() => draw(poller.feed), TICK_MS);

function draw(feed: Feed): void {
  document.title = titleOf(feed.migration, needsOf(feed), feed.wantsToken);
  render(
    <CommandLine.Provider value={typedAs}>
      <JobChanger.Provider value={(shard, change) => poller.changeJob(shard, change)}>
        <Page {...feed} now={Date.now()} />
      </JobChanger.Provider>
    </CommandLine.Provider>,
    root,
  );
}

const notStarted = ({ shard, problem }: NotStarted): string =>
  `Shard ${shard} is not started: ${problem}. The proxy tries again each second.`;

/** Shards that are not started yet come before those that run. */
const needsOf = ({ shards, starting }: Feed): readonly ShardNeeds[] => [
  ...starting.map(({ shard, problem }): ShardNeeds => ({
    shard,
    attention: [{ level: 'act', text: notStarted({ shard, problem }) }],
  })),
  ...shards.map(({ snapshot, attention }) => ({ shard: snapshot.name, attention })),
];

function Page(feed: Feed & { now: number }): JSX.Element {
  const { migration, shards, starting, answeredAt, problem, wantsToken, now } = feed;
  const age = answeredAt === null ? null : now - answeredAt;
  const stale = problem !== null || (age !== null && age > STALE_MS);
  return (
    <>
      <header class="top">
        <h1>{migration === null ? 'Migration status' : `Migration ${migration}`}</h1>
        <span class="note" role="status">
          {age === null ? 'waiting for the proxy …' : `updated ${Math.max(0, Math.round(age / 1000))} s ago`}; times are
          UTC
        </span>
      </header>
      {wantsToken && <TokenForm refused={feed.refused} />}
      {stale && !wantsToken && (
        <p class="banner no" role="alert">
          {`The proxy does not answer${problem === null ? '' : `: ${problem}`}. `}
          {answeredAt === null
            ? 'Nothing is known yet.'
            : `The figures below are ${Math.round(age! / 1000)} s old.`}{' '}
          <Runbook name="ShadowProxyDown" linked={false} />
        </p>
      )}
      {!stale && !wantsToken && answeredAt !== null && <Summary needs={needsOf(feed)} />}
      <div class={stale || wantsToken ? 'stale' : undefined}>
        {starting.map((shard) => (
          <p class="banner no">{notStarted(shard)}</p>
        ))}
        {shards.length > 1 && (
          <nav>
            {shards.map(({ snapshot: { name } }) => (
              <>
                <a href={`#shard-${name}`}>{name}</a>{' '}
              </>
            ))}
          </nav>
        )}
        {shards.map((view) => (
          <ShardSection key={view.snapshot.name} view={view} now={now} alone={shards.length + starting.length === 1} />
        ))}
      </div>
      {!wantsToken && <Glossary />}
    </>
  );
}

/** Whether there is anything to do, and what to do first. */
function Summary({ needs }: { needs: readonly ShardNeeds[] }): JSX.Element {
  const { kind, text, first } = headlineOf(needs);
  return (
    <div class={`banner ${kind}`} data-headline={kind}>
      <p>{text}</p>
      {first !== null && <Next of={first} linked />}
    </div>
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
        {refused ? 'This is not the admin token. ' : ''}Admin token of the proxy, kept until you close this tab:
      </label>
      <input id="token" name="token" type="password" autocomplete="off" spellcheck={false} required />
      <button type="submit">Show the status</button>
    </form>
  );
}
