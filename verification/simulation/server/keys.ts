/** Commands of keys of any type: deletion, expiry, names, DUMP and RESTORE, SCAN. */
import { refuseInCluster } from './cluster.js';
import { copyOf, dump, restored } from './dump.js';
import { matches } from './glob.js';
import { int64Of, integerOf, MAX_INT64, needInteger } from './numbers.js';
import { lower, Options } from './options.js';
import {
  bulk,
  bulkOrNil,
  bulks,
  integer,
  arrayOf,
  NO_DATABASE,
  NO_SUCH_KEY,
  NOT_INTEGER,
  OK,
  ONE,
  Refusal,
  SAME_OBJECT,
  simple,
  SYNTAX,
  ZERO,
  nil,
} from './reply.js';
import { scanOptions, scanStep } from './scan.js';
import type { Client, Database, Run, State } from './state.js';

const SECONDS = 1000n;

/** @throws {Refusal} in the server's words */
export function refuseExpiry(server: State, command: string): never {
  throw new Refusal(
    server.engine === 'redis'
      ? `ERR invalid expire time in '${command}' command`
      : `ERR invalid expire time in ${command}`,
  );
}

/** EXPIRE and its like. */
const expire =
  (command: string, unit: bigint, isAbsolute: boolean): Run =>
  ({ database, server }, args) => {
    const options = expireOptions(args, server);
    const given = int64Of(args[2]);
    if (given === null) throw NOT_INTEGER;
    const base = isAbsolute ? 0n : BigInt(server.now);
    let when = given * unit + base;
    if (server.engine === 'redis') {
      if (BigInt.asIntN(64, given * unit) !== given * unit || when > MAX_INT64) refuseExpiry(server, command);
    } else {
      // Its sums wrap around; it refuses some of the results.
      when = BigInt.asIntN(64, BigInt.asIntN(64, given * unit) + base);
      if ((when < 0n && given >= 0n) || (when - base > 0n && given < 0n)) refuseExpiry(server, command);
    }
    const key = args[1];
    const entry = database.get(key);
    if (entry === undefined) return ZERO;
    const at = Number(when);
    const old = entry.expireAt;
    if (options.has('nx') && old !== -1) return ZERO;
    if (options.has('xx') && old === -1) return ZERO;
    if (options.has('gt') && (old === -1 || at <= old)) return ZERO;
    if (options.has('lt') && old !== -1 && at >= old) return ZERO;
    if (at <= server.now && !server.keepsExpired) database.delete(key);
    else database.setExpiry(key, at);
    database.touch(key);
    return ONE;
  };

function expireOptions(args: readonly string[], { engine }: State): ReadonlySet<string> {
  const found = new Set<string>();
  if (args.length === 3) return found;
  for (const option of args.slice(3).map(lower)) {
    if (engine === 'keydb' || !['nx', 'xx', 'gt', 'lt'].includes(option))
      throw new Refusal(`ERR Unsupported option ${args[args.map(lower).indexOf(option, 3)]}`);
    found.add(option);
  }
  if (found.has('nx') && found.size > 1)
    throw new Refusal('ERR NX and XX, GT or LT options at the same time are not compatible');
  if (found.has('gt') && found.has('lt'))
    throw new Refusal('ERR GT and LT options at the same time are not compatible');
  return found;
}

const ttl =
  (shown: (ttl: number, at: number) => number): Run =>
  ({ database, server }, [, key]) => {
    const entry = database.get(key);
    if (entry === undefined) return integer(-2);
    return integer(entry.expireAt === -1 ? -1 : shown(Math.max(0, entry.expireAt - server.now), entry.expireAt));
  };

const inSeconds = (ms: number): number => Math.floor((ms + 500) / 1000);

const del: Run = ({ database }, args) => {
  let count = 0;
  for (let i = 1; i < args.length; i++) {
    if (database.get(args[i]) === undefined) continue;
    database.delete(args[i]);
    database.touch(args[i]);
    count++;
  }
  return integer(count);
};

const count: Run = ({ database }, args) => {
  let found = 0;
  for (let i = 1; i < args.length; i++) if (database.get(args[i]) !== undefined) found++;
  return integer(found);
};

const rename =
  (onlyNew: boolean): Run =>
  ({ database }, [, from, to]) => {
    const entry = database.get(from);
    if (entry === undefined) throw NO_SUCH_KEY;
    if (from === to) return onlyNew ? ZERO : OK;
    if (database.get(to) !== undefined) {
      if (onlyNew) return ZERO;
      database.delete(to);
    }
    database.add(to, entry.type, entry.value, entry.expireAt);
    database.delete(from);
    database.touch(from);
    database.touch(to);
    return onlyNew ? ONE : OK;
  };

function databaseAt({ server }: Client, text: string): Database {
  const index = integerOf(text);
  if (Number.isNaN(index) || Math.abs(index) > 2 ** 31 - 1) throw NOT_INTEGER;
  const found = server.databases[index];
  if (found === undefined) throw NO_DATABASE;
  return found;
}

const move: Run = (client, args) => {
  refuseInCluster(client.server, 'MOVE is');
  const { database } = client;
  const to = databaseAt(client, args[2]);
  if (to === database) throw SAME_OBJECT;
  const entry = database.get(args[1]);
  if (entry === undefined || to.get(args[1]) !== undefined) return ZERO;
  to.add(args[1], entry.type, entry.value, entry.expireAt);
  database.delete(args[1]);
  database.touch(args[1]);
  to.touch(args[1]);
  return ONE;
};

const copy: Run = (client, args) => {
  const { database } = client;
  const [, from, to] = args;
  let [replace, target] = [false, database];
  const options = new Options(args, 3);
  while (options.more) {
    const word = options.word();
    if (word === 'replace') replace = true;
    else if (word === 'db' && options.more) target = databaseAt(client, options.next());
    else throw SYNTAX;
  }
  if (target !== database && client.server.cluster !== null)
    throw new Refusal('ERR Copying to another database is not allowed in cluster mode');
  if (target === database && from === to) throw SAME_OBJECT;
  const entry = database.get(from);
  if (entry === undefined) return ZERO;
  if (target.get(to) !== undefined) {
    if (!replace) return ZERO;
    target.delete(to);
  }
  target.add(to, entry.type, copyOf(entry), entry.expireAt);
  target.touch(to);
  return ONE;
};

const restore: Run = ({ database, server }, args) => {
  const [, key] = args;
  let [replace, isAbsolute] = [false, false];
  let [idle, frequency] = [false, false];
  const options = new Options(args, 4);
  while (options.more) {
    const word = options.word();
    if (word === 'replace') replace = true;
    else if (word === 'absttl') isAbsolute = true;
    else if (word === 'idletime' && options.more && !frequency) {
      idle = true;
      if (needInteger(options.next()) < 0) throw new Refusal('ERR Invalid IDLETIME value, must be >= 0');
    } else if (word === 'freq' && options.more && !idle) {
      frequency = true;
      const value = needInteger(options.next());
      if (value < 0 || value > 255) throw new Refusal('ERR Invalid FREQ value, must be >= 0 and <= 255');
    } else throw SYNTAX;
  }
  if (!replace && database.get(key) !== undefined) throw new Refusal('BUSYKEY Target key name already exists.');
  const ttlGiven = needInteger(args[2]);
  if (ttlGiven < 0) throw new Refusal('ERR Invalid TTL value, must be >= 0');
  const { type, value } = restored(args[3], server.engine);
  const deleted = replace && database.delete(key);
  const at = ttlGiven === 0 ? -1 : isAbsolute ? ttlGiven : ttlGiven + server.now;
  if (at !== -1 && at <= server.now && !server.keepsExpired) {
    if (deleted) database.touch(key);
    return OK;
  }
  database.add(key, type, value, at);
  database.touch(key);
  return OK;
};

const scan: Run = ({ database, server }, args) => {
  const options = scanOptions(args, 1, true);
  const { next, found } = scanStep(database.keys.keys(), server, options);
  const shown = found.filter((key) => {
    if (!matches(options.pattern, key)) return false;
    const entry = database.get(key);
    return entry !== undefined && (options.type === null || entry.type === lower(options.type));
  });
  return arrayOf(2) + bulk(String(next)) + bulks(shown);
};

const randomKey: Run = ({ database, server, protocol }) => {
  while (database.keys.size > 0) {
    const keys = [...database.keys.keys()];
    const key = keys[server.below(keys.length)];
    if (database.get(key) !== undefined) return bulk(key);
    if (server.keepsExpired) break;
  }
  return nil(protocol);
};

const flush =
  (databasesOf: (client: Client) => readonly Database[]): Run =>
  (client, args) => {
    if (args.length > 2 || (args.length === 2 && !['sync', 'async'].includes(lower(args[1])))) throw SYNTAX;
    for (const database of databasesOf(client)) database.clear();
    client.server.tracking.flushed();
    client.server.dirty++;
    return OK;
  };

const swap: Run = (client, args) => {
  const { server } = client;
  refuseInCluster(server, 'SWAPDB is');
  const [first, second] = args.slice(1).map((text, i) => {
    const index = integerOf(text);
    if (Number.isNaN(index) || Math.abs(index) > 2 ** 31 - 1)
      throw new Refusal(`ERR invalid ${i === 0 ? 'first' : 'second'} DB index`);
    return index;
  });
  const [one, other] = [server.databases[first], server.databases[second]];
  if (one === undefined || other === undefined) throw NO_DATABASE;
  if (one !== other && server.engine === 'redis') one.swap(other);
  else if (one !== other) server.exchange(client, one, other);
  server.dirty++;
  return OK;
};

export const KEY_COMMANDS: Readonly<Record<string, Run>> = {
  del,
  unlink: del,
  expdel: del,
  exists: count,
  touch: count,
  type: ({ database }, [, key]) => simple(database.get(key)?.type ?? 'none'),
  expire: expire('expire', SECONDS, false),
  pexpire: expire('pexpire', 1n, false),
  expireat: expire('expireat', SECONDS, true),
  pexpireat: expire('pexpireat', 1n, true),
  ttl: ttl(inSeconds),
  pttl: ttl((ms) => ms),
  expiretime: ttl((_ms, at) => inSeconds(at)),
  pexpiretime: ttl((_ms, at) => at),
  persist({ database }, [, key]) {
    const entry = database.get(key);
    if (entry === undefined || entry.expireAt === -1) return ZERO;
    database.setExpiry(key, -1);
    database.touch(key);
    return ONE;
  },
  rename: rename(false),
  renamenx: rename(true),
  move,
  copy,
  dump({ database, server, protocol }, [, key]) {
    const entry = database.get(key);
    return bulkOrNil(entry && dump(entry, server.engine), protocol);
  },
  restore,
  scan,
  /** It does not delete what has expired. */
  keys({ database }, [, pattern]) {
    const found = [...database.keys].filter(([key, entry]) => matches(pattern, key) && !database.isExpired(entry));
    return bulks(found.map(([key]) => key));
  },
  randomkey: randomKey,
  dbsize: ({ database }) => integer(database.keys.size),
  flushdb: flush(({ database }) => [database]),
  flushall: flush(({ server }) => server.databases),
  swapdb: swap,
};
