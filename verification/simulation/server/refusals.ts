/** States in which a server refuses commands: those of LOADING, MASTERDOWN, BUSY, MISCONF, OOM, READONLY. */
import { Refusal } from './reply.js';
import type { Client, Command, Engine, State } from './state.js';

const NAMES: Readonly<Record<Engine, string>> = { redis: 'Redis', keydb: 'KeyDB' };

const OUT_OF_MEMORY = new Refusal("OOM command not allowed when used memory > 'maxmemory'.");
const READ_ONLY = new Refusal("READONLY You can't write against a read only replica.");
const MASTER_DOWN = new Refusal("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");

const cannotSave = (engine: Engine): Refusal =>
  new Refusal(
    engine === 'redis'
      ? "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error."
      : 'MISCONF KeyDB is configured to save RDB snapshots, but it is currently not able to persist on disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the KeyDB logs for details about the RDB error.',
  );

/** Commands that go on while a transaction fills the memory. */
const PAST_MEMORY = new Set(['exec', 'discard', 'quit', 'reset']);
/** Commands that KeyDB runs beside a script; Redis 7 marks its own with a flag. */
const BESIDE_SCRIPT = new Set(['auth', 'hello', 'replconf', 'multi', 'discard', 'watch', 'unwatch', 'reset']);

/** Why the server's state does not allow the command; null where it does. In the order of the servers. */
export function refusedByState(client: Client, command: Command): Refusal | null {
  const { server, multi } = client;
  const { engine, troubles, replicaOf } = server;
  // EXEC is what it runs.
  const run = command.name === 'exec' && multi !== null ? [command, ...multi.map((each) => each.command)] : [command];
  const writes = run.some(({ isWrite }) => isWrite);
  const has = (flag: string): boolean => run.every(({ flags }) => flags.has(flag));
  if (troubles.outOfMemory) {
    const queues = multi !== null && !PAST_MEMORY.has(command.name);
    if (queues || run.some(({ deniesOom }) => deniesOom)) return OUT_OF_MEMORY;
  }
  if (troubles.cannotSave && replicaOf === null && (writes || command.name === 'ping')) return cannotSave(engine);
  if (replicaOf !== null && writes) return READ_ONLY;
  if (isStale(server) && !has('stale')) return MASTER_DOWN;
  if (troubles.loading && !has('loading'))
    return new Refusal(`LOADING ${NAMES[engine]} is loading the dataset in memory`);
  if (troubles.busy && !mayRunBesideScript(command, engine))
    return new Refusal(
      `BUSY ${NAMES[engine]} is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.`,
    );
  return null;
}

const isStale = ({ replicaOf, config }: State): boolean =>
  replicaOf !== null && !replicaOf.up && config.get('replica-serve-stale-data') === 'no';

const mayRunBesideScript = ({ name, flags }: Command, engine: Engine): boolean =>
  engine === 'redis' ? flags.has('allow_busy') : BESIDE_SCRIPT.has(name) || name === 'script|kill';
