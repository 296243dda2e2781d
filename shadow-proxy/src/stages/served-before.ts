/**
 * Whether a shard without a state was served before. Its state folder may be lost, or its volume not mounted; then the
 * plan's stages would send clients to the wrong server. Keys of the shard on the target show it.
 */
import { neighboursOf } from '../plan/normalise.js';
import type { Plan, ShardPlan } from '../plan/plan.js';
import { connectTo } from '../copy/key/key-reader.js';
import type { Connection } from '../upstream/connection.js';
import { Dialer } from '../upstream/dialer.js';
import { inTime } from '../io/in-time.js';
import { after, clearTimer } from '../io/timers.js';
import { Turn } from '../io/turn.js';
import { isError, text, errorText } from '../resp/decode.js';
import type { Matcher } from '../route/glob.js';
import { Owners } from '../route/owner.js';

/** KeyDB answers a SCAN of 100 keys or more from a snapshot, which harms a concurrent SET. */
const PAGE_KEYS = 99;
/** Maximum number of keys of other shards that are read. */
const MAX_KEYS = 2_000_000;
/** Maximum time for all of it, in ms. */
const MAX_MS = 60_000;

/**
 * Why the shard may have been served before, in words; null if it was not: the target has no key of it.
 * @throws {Error} if the target cannot be asked
 */
export async function tracesOf(plan: Plan, shard: ShardPlan): Promise<string | null> {
  const neighbours = shard.sharedTarget ? neighboursOf(plan, shard) : [];
  const { mine } = new Owners(
    shard.owns,
    neighbours.map(({ owns }) => owns),
  );
  // No client was ever sent there: on a shared target, a shard that does not say which keys it has stays in `shadow`.
  if (shard.sharedTarget && mine === null) return null;
  const dialer = new Dialer(shard.target, plan.limits.connectMs);
  const connection = await opened(dialer, connectTo(dialer, `shadow-proxy-asks:${shard.name}`, new Turn()));
  const timer = after(MAX_MS, () => connection.destroy(new Error(`${dialer.label} does not answer`)));
  try {
    const counts = await keyCounts(connection);
    const total = [...counts.values()].reduce((sum, keys) => sum + keys, 0);
    if (!shard.sharedTarget || total === 0) return total === 0 ? null : `holds ${total} keys`;
    return await findOwned(connection, [...counts.keys()], mine!);
  } finally {
    clearTimer(timer);
    connection.destroy();
  }
}

/** A server that accepts connections and does not answer would be waited for without a limit. */
function opened(dialer: Dialer, opening: Promise<Connection>): Promise<Connection> {
  let late = false;
  opening.then((connection) => late && connection.destroy()).catch(() => undefined);
  return inTime(opening, dialer.timeoutMs, () => {
    late = true;
    return new Error(`${dialer.label} does not answer`);
  });
}

/** Number of keys, by database. */
async function keyCounts(connection: Connection): Promise<ReadonlyMap<number, number>> {
  const info = await ask(connection, 'INFO', 'keyspace');
  return new Map([...info.matchAll(/^db(\d+):keys=(\d+)/gm)].map(([, db, keys]) => [Number(db), Number(keys)]));
}

async function findOwned(connection: Connection, databases: readonly number[], mine: Matcher): Promise<string | null> {
  let seen = 0;
  for (const db of databases) {
    await ask(connection, 'SELECT', db);
    let cursor = '';
    while (cursor !== '0') {
      const reply = await connection.ask('SCAN', cursor || '0', 'COUNT', PAGE_KEYS);
      if (isError(reply)) throw new Error(`SCAN is refused: ${errorText(reply)}`);
      const [next, keys] = reply.items!;
      if (keys.items!.some(({ data }) => mine(data!, 0, data!.length))) return 'holds keys that this shard owns';
      seen += keys.items!.length;
      if (seen > MAX_KEYS)
        return `holds too many keys to check: the first ${seen} were checked, and none of them belongs to this shard`;
      cursor = text(next);
    }
  }
  return null;
}

async function ask(connection: Connection, ...command: (string | number)[]): Promise<string> {
  const reply = await connection.ask(...command);
  if (isError(reply)) throw new Error(`${command[0]} is refused: ${errorText(reply)}`);
  return text(reply);
}
