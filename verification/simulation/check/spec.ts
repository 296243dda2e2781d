/** What commands do to a few keys, and what they answer: written from Redis's documentation, for the checkers. */
import { isError, type Reply } from '../clients/replies.js';
import { HASH_RUNS } from './spec/hashes.js';
import { KEY_RUNS } from './spec/keys.js';
import { LIST_RUNS } from './spec/lists.js';
import { SET_RUNS } from './spec/sets.js';
import { SORTED_SET_RUNS } from './spec/sorted-sets.js';
import { isSame, Refused, Space, type Run, type Window } from './spec/space.js';
import { STREAM_RUNS } from './spec/streams.js';
import { STRING_RUNS } from './spec/strings.js';

export interface Asked {
  readonly client: string;
  readonly args: readonly string[];
  /** Of EXEC: what was queued. */
  readonly queued?: readonly (readonly string[])[];
  /** Of EXEC: what its client watched counts. */
  readonly watches?: boolean;
  /** Undefined where it was lost. */
  readonly reply: Reply | undefined;
}

export interface Bounds {
  /** By how much the times at which keys expire may differ from what the clients' clock says. */
  readonly slackMs: number;
  /** A command that blocks takes nothing so long after its client has left; absent where a server may run it late. */
  readonly leftMs?: number;
  /** An EXEC may answer nil as the connection that watched is lost, or as its workload's stage has changed. */
  readonly mayAbort: boolean;
}

const RUNS: Readonly<Record<string, Run>> = {
  ...STRING_RUNS,
  ...LIST_RUNS,
  ...HASH_RUNS,
  ...SET_RUNS,
  ...SORTED_SET_RUNS,
  ...STREAM_RUNS,
  ...KEY_RUNS,
};

/** Commands that change nothing: a watched key is none the worse for them. */
const READS = new Set(
  (
    'GET GETRANGE STRLEN EXISTS TTL PTTL MGET TOUCH LLEN LRANGE LINDEX HGET HMGET HEXISTS HLEN HGETALL HKEYS HVALS ' +
    'SISMEMBER SMISMEMBER SRANDMEMBER SCARD SMEMBERS SINTER SUNION SDIFF ZSCORE ZRANK ZCARD ZCOUNT ZRANGE XLEN XRANGE'
  ).split(' '),
);

/** Commands whose effect nobody knows where the reply is lost: the server chooses an ID by its clock. */
export const isUnpredictable = ({ args, queued = [] }: Asked): boolean =>
  [args, ...queued].some(([name, ...rest]) => name === 'XADD' && rest.includes('*'));

/** Every state that the command may leave, where one of its outcomes is what the client saw. */
export function outcomes(state: string, asked: Asked, window: Window, { slackMs, mayAbort }: Bounds): string[] {
  const found: string[] = [];
  const path: { choice: number; of: number }[] = [];
  do {
    const space = new Space(state, window, slackMs, path, asked.reply);
    const reply = run(space, asked, mayAbort);
    if (reply === IMPOSSIBLE) continue;
    if (asked.reply === undefined || isSameReply(reply, asked.reply)) found.push(JSON.stringify(space.held));
  } while (advance(path));
  return found;
}

const IMPOSSIBLE = Symbol('impossible');

function run(
  space: Space,
  { client, args, queued = [], watches = false, reply }: Asked,
  mayAbort: boolean,
): Reply | typeof IMPOSSIBLE {
  const { watched } = space.held;
  switch (args[0]) {
    case 'WATCH':
      watched[client] = Object.fromEntries(args.slice(1).map((key) => [key, 0]));
      return '+OK';
    case 'UNWATCH':
      delete watched[client];
      return '+OK';
    case 'EXEC': {
      const changes = watches ? Object.values(watched[client] ?? {}) : [];
      delete watched[client];
      // Nothing is run where a watched key has changed, and only then.
      if (reply === null) return (watches && mayAbort) || changes.some((change) => change > 0) ? null : IMPOSSIBLE;
      if (changes.includes(2)) return reply === undefined ? null : IMPOSSIBLE;
      return queued.map((each, i) => {
        space.observed = Array.isArray(reply) ? (reply as readonly Reply[])[i] : undefined;
        return runOne(space, each);
      });
    }
    default:
      return runOne(space, args);
  }
}

function runOne(space: Space, args: readonly string[]): Reply {
  const { keys, watched } = space.held;
  const watches = Object.values(watched).filter((each) => args.some((arg) => arg in each));
  const before = watches.length === 0 ? null : new Map(args.map((key) => [key, JSON.stringify(keys[key])]));
  const command = RUNS[args[0]];
  if (command === undefined) throw new Error(`simulation/check/spec lacks ${args[0]}`);
  let reply: Reply;
  try {
    reply = command(space, args);
  } catch (refused) {
    if (!(refused instanceof Refused)) throw refused;
    reply = `-${refused.message}`;
  }
  for (const each of watches)
    for (const key of Object.keys(each))
      if (before!.has(key) && !READS.has(args[0]))
        each[key] = before!.get(key) === JSON.stringify(keys[key]) ? (Math.max(each[key], 1) as 1 | 2) : 2;
  return reply;
}

/** An error is the same as another with its first word. */
function isSameReply(reply: Reply, seen: Reply): boolean {
  if (isError(reply)) return isError(seen) && seen.split(' ', 1)[0] === reply;
  if (!Array.isArray(reply) || !Array.isArray(seen) || !(reply as readonly Reply[]).some(isError))
    return isSame(reply, seen);
  const others = seen as readonly Reply[];
  return reply.length === others.length && (reply as readonly Reply[]).every((each, i) => isSameReply(each, others[i]));
}

/** Goes to the next path; false after the last. */
function advance(path: { choice: number; of: number }[]): boolean {
  while (path.length > 0) {
    const last = path[path.length - 1];
    if (++last.choice < last.of) return true;
    path.pop();
  }
  return false;
}
