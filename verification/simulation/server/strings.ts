/** Commands of strings, bits among them. */
import { addFloats, int64Of, integerOf, MAX_INT64, MIN_INT64, needInteger } from './numbers.js';
import { refuseExpiry } from './keys.js';
import { lower } from './options.js';
import {
  arrayOf,
  bulk,
  bulkOrNil,
  integer,
  nil,
  NOT_FLOAT,
  NOT_INTEGER,
  OK,
  ONE,
  Refusal,
  SYNTAX,
  WRONG_TYPE,
  ZERO,
} from './reply.js';
import type { Client, Run, State } from './state.js';

const MAX_BYTES = 512 * 1024 * 1024;
const TOO_LONG = new Refusal('ERR string exceeds maximum allowed size (proto-max-bulk-len)');

/** The options of SET and GETEX that say when the key expires. */
const EXPIRIES: Readonly<Record<string, { readonly unit: bigint; readonly isAbsolute: boolean }>> = {
  ex: { unit: 1000n, isAbsolute: false },
  px: { unit: 1n, isAbsolute: false },
  exat: { unit: 1000n, isAbsolute: true },
  pxat: { unit: 1n, isAbsolute: true },
};

interface Expiry {
  readonly given: string;
  readonly unit: bigint;
  readonly isAbsolute: boolean;
}

/** Unix milliseconds. @throws {Refusal} */
function expiryAt(server: State, { given, unit, isAbsolute }: Expiry, command: string): number {
  const value = int64Of(given);
  if (value === null) throw NOT_INTEGER;
  const at = value * unit + (isAbsolute ? 0n : BigInt(server.now));
  if (value <= 0n || value * unit > MAX_INT64 || at > MAX_INT64) refuseExpiry(server, command);
  return Number(at);
}

/** SET with options. */
const set: Run = (client, args) => {
  const { database, server } = client;
  const [, key, value] = args;
  if (args.length === 3) {
    // KeyDB puts the value in the place of an expired one without deleting that before.
    if (server.engine === 'redis') database.get(key);
    database.overwrite(key, 'string', value);
    database.touch(key);
    return OK;
  }
  let [nx, xx, get, keep] = [false, false, false, false];
  let expiry: Expiry | null = null;
  for (let i = 3; i < args.length; i++) {
    const word = lower(args[i]);
    const form = EXPIRIES[word];
    const nxWithGet = server.engine === 'keydb';
    if (word === 'nx' && !xx && !(nxWithGet && get)) nx = true;
    else if (word === 'xx' && !nx) xx = true;
    else if (word === 'get' && !(nxWithGet && nx)) get = true;
    else if (word === 'keepttl' && expiry === null) keep = true;
    else if (form !== undefined && !keep && isSame(expiry, form) && i + 1 < args.length)
      expiry = { ...form, given: args[++i] };
    else throw SYNTAX;
  }
  const at = expiry === null ? -1 : expiryAt(server, expiry, 'set');
  let reply = OK;
  const read = (): string => bulkOrNil(database.getAs(key, 'string'), client.protocol);
  if (server.engine === 'redis') {
    if (get) reply = read();
    const found = database.get(key) !== undefined;
    if ((nx && found) || (xx && !found)) return get ? reply : nil(client.protocol);
  } else {
    if ((nx && database.get(key) !== undefined) || (xx && database.get(key) === undefined)) return nil(client.protocol);
    // Without NX, XX and GET it does not look whether the old value has expired: KEEPTTL keeps a past expiry.
    if (get) reply = read();
  }
  database.overwrite(key, 'string', value, keep);
  if (at !== -1) database.setExpiry(key, at);
  database.touch(key);
  return reply;
};

/** An option may come twice, but no two of them together. */
const isSame = (before: Expiry | null, form: { readonly unit: bigint; readonly isAbsolute: boolean }): boolean =>
  before === null || (before.unit === form.unit && before.isAbsolute === form.isAbsolute);

const setFor =
  (command: string, form: string): Run =>
  ({ database, server }, [, key, given, value]) => {
    const at = expiryAt(server, { ...EXPIRIES[form], given }, command);
    if (server.engine === 'redis') database.get(key);
    database.overwrite(key, 'string', value);
    database.setExpiry(key, at);
    database.touch(key);
    return OK;
  };

const getex: Run = ({ database, server, protocol }, args) => {
  const [, key] = args;
  let persist = false;
  let expiry: Expiry | null = null;
  for (let i = 2; i < args.length; i++) {
    const word = lower(args[i]);
    const form = EXPIRIES[word];
    if (word === 'persist' && expiry === null) persist = true;
    else if (form !== undefined && !persist && isSame(expiry, form) && i + 1 < args.length)
      expiry = { ...form, given: args[++i] };
    else throw SYNTAX;
  }
  const value = database.getAs(key, 'string');
  if (value === undefined) return nil(protocol);
  if (expiry !== null) {
    const at = expiryAt(server, expiry, 'getex');
    if (expiry.isAbsolute && at <= server.now && !server.keepsExpired) database.delete(key);
    else database.setExpiry(key, at);
    database.touch(key);
  } else if (persist && database.get(key)!.expireAt !== -1) {
    database.setExpiry(key, -1);
    database.touch(key);
  }
  return bulk(value);
};

/** Puts a string in the place of another; its expiry stays. */
function write({ database }: Client, key: string, value: string): void {
  database.overwrite(key, 'string', value, true);
  database.touch(key);
}

function increment(client: Client, key: string, by: bigint): string {
  const text = client.database.getAs(key, 'string');
  const old = text === undefined ? 0n : int64Of(text);
  if (old === null) throw NOT_INTEGER;
  const value = old + by;
  if (value > MAX_INT64 || value < MIN_INT64) throw new Refusal('ERR increment or decrement would overflow');
  write(client, key, String(value));
  return integer(value);
}

function incrementBy(client: Client, key: string, text: string, sign: bigint): string {
  const by = int64Of(text);
  if (by === null) throw NOT_INTEGER;
  if (sign === -1n && by === MIN_INT64 && client.server.engine === 'redis')
    throw new Refusal('ERR decrement would overflow');
  // KeyDB's negation of the lowest number is that number again.
  return increment(client, key, BigInt.asIntN(64, by * sign));
}

const getRange: Run = ({ database }, args) => {
  const [start, end] = [needInteger(args[2]), needInteger(args[3])];
  return bulk(rangeOf(database.getAs(args[1], 'string') ?? '', start, end));
};

/** As GETRANGE counts. */
function rangeOf(text: string, start: number, end: number): string {
  if (start < 0 && end < 0 && start > end) return '';
  const from = Math.max(0, start < 0 ? text.length + start : start);
  const to = Math.min(text.length - 1, Math.max(0, end < 0 ? text.length + end : end));
  return from > to ? '' : text.slice(from, to + 1);
}

const setRange: Run = (client, args) => {
  const [, key, given, value] = args;
  const offset = needInteger(given);
  if (offset < 0) throw new Refusal('ERR offset is out of range');
  const old = client.database.getAs(key, 'string');
  if (value === '') return integer(old?.length ?? 0);
  if (offset + value.length > MAX_BYTES) throw TOO_LONG;
  const before = (old ?? '').slice(0, offset).padEnd(offset, '\0');
  const text = before + value + (old ?? '').slice(offset + value.length);
  write(client, key, text);
  return integer(text.length);
};

function setMany({ database, server }: Client, args: readonly string[], onlyNew: boolean): string {
  if (args.length % 2 === 0) {
    const command = onlyNew ? 'msetnx' : 'mset';
    throw new Refusal(
      server.engine === 'redis'
        ? `ERR wrong number of arguments for '${command}' command`
        : 'ERR wrong number of arguments for MSET',
    );
  }
  if (onlyNew) for (let i = 1; i < args.length; i += 2) if (database.get(args[i]) !== undefined) return ZERO;
  for (let i = 1; i < args.length; i += 2) {
    if (server.engine === 'redis') database.get(args[i]);
    database.overwrite(args[i], 'string', args[i + 1]);
    database.touch(args[i]);
  }
  return onlyNew ? ONE : OK;
}

const NOT_OFFSET = new Refusal('ERR bit offset is not an integer or out of range');

function bitOffset(text: string): number {
  const offset = needInteger(text, NOT_OFFSET);
  if (offset < 0 || offset >= MAX_BYTES * 8) throw NOT_OFFSET;
  return offset;
}

const bitAt = (text: string, offset: number): number => {
  const byte = offset >> 3;
  return byte < text.length ? (text.charCodeAt(byte) >> (7 - (offset & 7))) & 1 : 0;
};

const setBit: Run = (client, args) => {
  const offset = bitOffset(args[2]);
  const bit = integerOf(args[3]);
  if (bit !== 0 && bit !== 1) throw new Refusal('ERR bit is not an integer or out of range');
  const old = client.database.getAs(args[1], 'string') ?? '';
  const byte = offset >> 3;
  const text = old.padEnd(byte + 1, '\0');
  const mask = 1 << (7 - (offset & 7));
  const code = (text.charCodeAt(byte) & ~mask) | (bit === 1 ? mask : 0);
  write(client, args[1], text.slice(0, byte) + String.fromCharCode(code) + text.slice(byte + 1));
  return integer(bitAt(old, offset));
};

const bitCount: Run = ({ database, server }, args) => {
  const text = database.getAs(args[1], 'string');
  const [, , first, last, unit] = args;
  const byBit = lower(unit ?? 'byte') === 'bit';
  if (text === undefined) return ZERO;
  if (args.length === 3 || args.length > (server.engine === 'keydb' ? 4 : 5)) throw SYNTAX;
  let [start, end] = [0, -1];
  if (args.length >= 4) {
    [start, end] = [needInteger(first), needInteger(last)];
    if (unit !== undefined && !['bit', 'byte'].includes(lower(unit))) throw SYNTAX;
  }
  const size = byBit ? text.length * 8 : text.length;
  if (start < 0 && end < 0 && start > end) return ZERO;
  const from = Math.max(0, start < 0 ? size + start : start);
  const to = Math.min(size - 1, Math.max(0, end < 0 ? size + end : end));
  let count = 0;
  for (let bit = byBit ? from : from * 8; bit <= (byBit ? to : to * 8 + 7); bit++) count += bitAt(text, bit);
  return integer(count);
};

export const STRING_COMMANDS: Readonly<Record<string, Run>> = {
  get({ database, protocol }, [, key]) {
    const entry = database.get(key);
    if (entry === undefined) return nil(protocol);
    if (entry.type !== 'string') throw WRONG_TYPE;
    return bulk(entry.value as string);
  },
  set,
  setnx({ database }, [, key, value]) {
    if (database.get(key) !== undefined) return ZERO;
    database.overwrite(key, 'string', value);
    database.touch(key);
    return ONE;
  },
  setex: setFor('setex', 'ex'),
  psetex: setFor('psetex', 'px'),
  getex,
  getdel({ database, protocol }, [, key]) {
    const value = database.getAs(key, 'string');
    if (value === undefined) return nil(protocol);
    database.delete(key);
    database.touch(key);
    return bulk(value);
  },
  getset({ database, protocol }, [, key, value]) {
    const old = database.getAs(key, 'string');
    database.overwrite(key, 'string', value);
    database.touch(key);
    return bulkOrNil(old, protocol);
  },
  mget({ database, protocol }, args) {
    let reply = arrayOf(args.length - 1);
    for (let i = 1; i < args.length; i++) {
      const entry = database.get(args[i]);
      reply += bulkOrNil(entry?.type === 'string' ? (entry.value as string) : undefined, protocol);
    }
    return reply;
  },
  mset: (client, args) => setMany(client, args, false),
  msetnx: (client, args) => setMany(client, args, true),
  incr: (client, [, key]) => increment(client, key, 1n),
  decr: (client, [, key]) => increment(client, key, -1n),
  incrby: (client, [, key, by]) => incrementBy(client, key, by, 1n),
  decrby: (client, [, key, by]) => incrementBy(client, key, by, -1n),
  incrbyfloat(client, [, key, by]) {
    const value = addFloats(client.database.getAs(key, 'string') ?? '0', by, NOT_FLOAT);
    write(client, key, value);
    return bulk(value);
  },
  append(client, [, key, added]) {
    const text = (client.database.getAs(key, 'string') ?? '') + added;
    if (text.length > MAX_BYTES) throw TOO_LONG;
    write(client, key, text);
    return integer(text.length);
  },
  strlen: ({ database }, [, key]) => integer(database.getAs(key, 'string')?.length ?? 0),
  getrange: getRange,
  substr: getRange,
  setrange: setRange,
  getbit({ database }, args) {
    const offset = bitOffset(args[2]);
    return integer(bitAt(database.getAs(args[1], 'string') ?? '', offset));
  },
  setbit: setBit,
  bitcount: bitCount,
};
