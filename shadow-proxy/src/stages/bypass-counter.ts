/** Traffic that bypasses the proxy: foreign clients at the source, and writes that the proxy did not send. */
import { isoTime, unixMs } from '../io/clock.js';
import { isError, text } from '../resp/decode.js';
import type { Authorities } from '../pipeline/authorities.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import { sum } from '../telemetry/snapshot.js';
import { clientField, listClients } from '../upstream/handshake.js';
import { parseInfo, type Server } from '../upstream/server.js';
import { foreignWrites, parseCalls, type CallCounts } from './bypass-watch.js';
import type { PassedWrites } from './gate-facts.js';
import { soon } from './soon.js';

export interface BypassContext {
  readonly sequencer: Sequencer;
  readonly authorities: Pick<Authorities, 'frozen'>;
  /** Writes that the proxy sent to the source, by command; and the number of scripts. */
  readonly sent: () => { readonly writes: ReadonlyMap<string, number>; readonly scripts: number };
  /** Whether proxies of other shards write to the source, too: then its counts show nothing. */
  readonly sharedSource: boolean;
}

/** Counts writes at the source that this proxy did not send. */
export class BypassCounter {
  /** The source's counts at the last reading; null if there is none to compare with. */
  #last: CallCounts | null = null;
  /** Since when every reading could be compared; null if the last one could not. */
  #countedSince: Date | null = null;
  #total = 0;

  /**
   * @param passed the last writes that bypassed an earlier process; null if there were none
   * @param found called with such writes
   */
  constructor(
    private readonly by: BypassContext,
    private passed: PassedWrites['last'],
    private readonly found: (last: PassedWrites['last']) => void,
  ) {}

  /** Number of such writes since the start. */
  get total(): number {
    return this.#total;
  }

  /** Reads the counts once more. */
  async passedWrites(): Promise<PassedWrites> {
    await this.count();
    return this.soFar();
  }

  /** The result of all readings so far. */
  soFar(): PassedWrites {
    return { since: this.#countedSince?.toISOString() ?? null, last: this.passed };
  }

  /**
   * Compares the source's counts with the proxy's. This works only while the source gets nothing but clients' commands
   * from the proxy.
   */
  async count(): Promise<void> {
    const { sequencer, sent } = this.by;
    const { source } = sequencer.servers;
    if (!this.#isComparable) return this.#forget();
    const before = sent();
    const lanes = [...sequencer.lanes.source.all(), ...sequencer.lanes.source.private()];
    const inFlight = lanes.reduce((all, { commandsInFlight }) => all + commandsInFlight, 0);
    const scriptsInFlight = sequencer.lanes.source.longCommands.scripts;
    const reply = await soon(source.ask('INFO', 'commandstats'));
    if (reply === null || isError(reply) || !this.#isComparable) return this.#forget();
    const after = sent();
    const calls = parseCalls(
      parseInfo(text(reply)),
      new Set(before.writes.keys()),
      (subcommand) => sequencer.table.byName(subcommand)?.write === false,
    );
    const now: CallCounts = {
      runId: source.runId,
      calls,
      sentBefore: before.writes,
      sentAfter: after.writes,
      inFlight,
      scripts: after.scripts,
      mayRunScripts: scriptsInFlight > 0 || after.scripts !== before.scripts,
    };
    const last = this.#last;
    this.#last = now;
    if (last === null) return;
    const found = foreignWrites(last, now);
    this.#countedSince = found === null ? null : (this.#countedSince ?? new Date(unixMs()));
    if (found === null || sum(found) === 0) return;
    this.passed = { at: isoTime(), writes: found };
    this.found(this.passed);
    this.#total += sum(found);
  }

  get #isComparable(): boolean {
    const { sharedSource, sequencer, authorities } = this.by;
    const { router, verdicts, servers } = sequencer;
    return (
      !sharedSource &&
      router.oneAuthority &&
      router.default.position.keylessRule.authority === 'source' &&
      authorities.frozen === null &&
      // The source may still run commands of a lost connection.
      verdicts.allClosed(servers.source) &&
      servers.source.up
    );
  }

  /** Stages have changed: while the source is the mirror, it gets other commands than those of clients. */
  stagesMoved(): void {
    if (!this.#isComparable) this.#forget();
  }

  #forget(): void {
    this.#last = null;
    this.#countedSince = null;
  }
}

/** Prefix of the names of the kit's own connections. */
const KIT = 'shadow-proxy';

/**
 * Lines of `CLIENT LIST` about clients that are neither the kit's, nor replicas or Sentinels. The proxy knows most of
 * its connections by their client IDs. A connection of the kit has no name before its login, and for a moment after
 * RESET. So a connection that has sent nothing, or RESET as the last command, may be the kit's.
 */
export async function listForeignClients(source: Server): Promise<readonly string[]> {
  const own = new Set(source.connections.list().map(({ clientId }) => clientId));
  const listed = await listClients((...args) => source.ask(...args));
  return [...listed].flatMap(([id, line]) =>
    own.has(id) ||
    clientField(line, 'name').startsWith(KIT) ||
    /[SMO]/.test(clientField(line, 'flags')) ||
    ['NULL', 'reset'].includes(clientField(line, 'cmd'))
      ? []
      : [line],
  );
}

/**
 * Clients at the source that are neither the kit's, nor known, nor replicas or Sentinels. A connection that has not
 * sent a command may be the kit's before it has its name.
 */
export async function bypassingClients(source: Server, known: readonly string[]): Promise<readonly string[] | null> {
  const listed = await soon(listForeignClients(source));
  if (listed === null) return null;
  const foreign = listed.filter((line) => clientField(line, 'cmd') !== 'ping|sentinel');
  const who = foreign.map((line) => ({
    name: clientField(line, 'name'),
    host: clientField(line, 'addr').replace(/:\d+$/, ''),
    cmd: clientField(line, 'cmd'),
  }));
  return who
    .filter(({ name, host }) => !known.includes(name) && !known.includes(host))
    .map(({ name, host, cmd }) => `${name === '' ? host : `${name} at ${host}`} (${cmd})`);
}
