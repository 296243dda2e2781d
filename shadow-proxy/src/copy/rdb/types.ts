import type { Value } from './value.js';

/** How a value is laid out after its type byte. */
export type Form =
  | 'plain'
  | 'text scores'
  | 'field expiry'
  | 'field expiry, first form'
  | 'field expiry of Valkey'
  | 'zipmap'
  | 'ziplist'
  | 'listpack'
  | 'listpack with expiry'
  | 'listpack with expiry, first form'
  | 'intset'
  | 'quicklist'
  | 'quicklist 2'
  | 'listpacks'
  | 'listpacks 2'
  | 'listpacks 3'
  | 'listpacks 4'
  | 'listpacks 5'
  | 'template listpack'
  | 'template array';

export interface TypeByte {
  readonly kind: Value['type'];
  readonly form: Form;
  /** The first RDB version whose readers know the type. */
  readonly since: number;
}

const type = (kind: Value['type'], form: Form, since: number): TypeByte => ({ kind, form, since });

/**
 * Every type byte of a value that is read, save modules'. The first forms are those of release candidates of 7.4.
 * Source: `RDB_TYPE_*` in rdb.h of Redis 2.8 to 8.0; of 8.6 to 8.10 what its servers, tests and readers of its format
 * show.
 */
export const TYPES: ReadonlyMap<number, TypeByte> = new Map([
  [0, type('string', 'plain', 1)],
  [1, type('list', 'plain', 1)],
  [2, type('set', 'plain', 1)],
  [3, type('zset', 'text scores', 1)],
  [4, type('hash', 'plain', 1)],
  [5, type('zset', 'plain', 8)],
  [9, type('hash', 'zipmap', 2)],
  [10, type('list', 'ziplist', 2)],
  [11, type('set', 'intset', 2)],
  [12, type('zset', 'ziplist', 2)],
  [13, type('hash', 'ziplist', 4)],
  [14, type('list', 'quicklist', 7)],
  [15, type('stream', 'listpacks', 9)],
  [16, type('hash', 'listpack', 10)],
  [17, type('zset', 'listpack', 10)],
  [18, type('list', 'quicklist 2', 10)],
  [19, type('stream', 'listpacks 2', 10)],
  [20, type('set', 'listpack', 11)],
  [21, type('stream', 'listpacks 3', 11)],
  [22, type('hash', 'field expiry, first form', 12)],
  [23, type('hash', 'listpack with expiry, first form', 12)],
  [24, type('hash', 'field expiry', 12)],
  [25, type('hash', 'listpack with expiry', 12)],
  [26, type('stream', 'listpacks 4', 13)],
  [27, type('stream', 'listpacks 5', 14)],
  [29, type('hash', 'template listpack', 15)],
  [31, type('hash', 'template array', 15)],
]);

/** Type bytes of hashes whose fields may expire. */
export const FIELD_EXPIRY: ReadonlySet<number> = new Set(
  [...TYPES].flatMap(([byte, { since, kind }]) => (kind === 'hash' && since === 12 ? [byte] : [])),
);

/** The type bytes that `encodeDump` writes. */
export const WRITTEN = {
  string: 0,
  list: 1,
  set: 2,
  hash: 4,
  hashExpiry: 24,
  hashOfValkey: 22,
  zset: 5,
  zsetText: 3,
  stream: 15,
  stream2: 19,
  stream3: 21,
};

/** Type bytes of values that no form of KeyDB can hold, or that DUMP never writes: what each is. */
export const REFUSED: ReadonlyMap<number, string> = new Map([
  [28, 'an array of Redis 8.8, a type that KeyDB does not have'],
  [30, 'a hash that refers to a template of an RDB file, which no DUMP has'],
  [32, 'a hash that refers to a template of an RDB file, which no DUMP has'],
  [33, 'a rate limit of GCRA, a type that KeyDB does not have'],
  [243, 'a key with metadata of a module, which KeyDB does not have'],
]);

export const [MODULE, MODULE_2] = [6, 7];
/** A scheduled script, which KeyDB keeps as a key. */
export const KEYDB_CRON = 64;

/** RDB's mark of a named extra string after a value; KeyDB adds one to every DUMP, of this name. */
export const AUX = 250;
export const KEYDB_TIMESTAMP = 'mvcc-tstamp';
/** How that begins. */
export const KEYDB_EXTRA = Buffer.from([AUX, KEYDB_TIMESTAMP.length, ...Buffer.from(KEYDB_TIMESTAMP)]);

/** RDB versions whose payloads are read: 13 is Redis 8.6, 14 is 8.8, 15 is 8.10. */
export const [OLDEST_VERSION, NEWEST_VERSION] = [6, 15];
/** The newest that is written; servers read all that are older than their own. */
export const NEWEST_WRITTEN = 12;
/**
 * Those of Valkey 9.0 and 9.2, which are read only. Valkey went its own way after RDB 11: up to there the types are the
 * same, later ones are its own, whatever their number means in other servers. Source: `RDB_VERSION` and `RDB_TYPE_*` in
 * rdb.h of Valkey.
 */
export const VALKEY_VERSIONS = [80, 81];
/** Its own types: each field with its value and when it expires. */
export const VALKEY_TYPES: ReadonlyMap<number, TypeByte> = new Map([[22, type('hash', 'field expiry of Valkey', 80)]]);
export const LAST_SHARED_VERSION = 11;
/**
 * Versions that first had: binary scores; streams; counters of streams; consumers' active time; expiry of hash fields.
 */
export const SINCE = { binaryScores: 8, streams: 9, streamCounters: 10, activeTime: 11, fieldExpiry: 12 };

/** When a hash field may expire at the latest, in Unix milliseconds (48 bits). */
export const MAX_FIELD_EXPIRY = 2 ** 48 - 1;
