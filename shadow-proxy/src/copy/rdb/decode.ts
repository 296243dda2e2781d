import { TranscodeError } from './error.js';
import { checkFooter, FOOTER } from './footer.js';
import { Intset } from './intset.js';
import { Listpack, type Elements } from './listpack.js';
import { PayloadReader } from './payload-reader.js';
import { readStream, type Generation } from './stream-decode.js';
import {
  AUX,
  KEYDB_CRON,
  KEYDB_TIMESTAMP,
  LAST_SHARED_VERSION,
  MAX_FIELD_EXPIRY,
  MODULE,
  MODULE_2,
  REFUSED,
  TYPES,
  VALKEY_TYPES,
  VALKEY_VERSIONS,
  WRITTEN,
} from './types.js';
import type { Form, TypeByte } from './types.js';
import type { HashField, Value, ZsetMember } from './value.js';
import { Ziplist, Zipmap } from './ziplist.js';

/** How the nodes of a `quicklist 2` hold their elements. */
const [NODE_PLAIN, NODE_PACKED] = [1, 2];

/** A payload taken apart; `valueEnd` is the offset after the value, where a KeyDB extra or the footer begins. */
export interface Dump {
  readonly type: TypeByte;
  readonly version: number;
  readonly value: Value;
  readonly valueEnd: number;
}

/**
 * The value in a DUMP payload of RDB 6 to 15, from Redis or KeyDB, or of Valkey 9. Its Buffers are views of `payload`.
 * @throws {TranscodeError} if the payload is damaged, unknown, or a module's
 */
export const decodeDump = (payload: Buffer): Value => openDump(payload).value;

/** As `decodeDump`, with what is around the value. @param version where the footer was checked already */
export function openDump(payload: Buffer, version = checkFooter(payload)): Dump {
  const end = payload.length - FOOTER;
  const type = typeOf(payload, version);
  const from = new PayloadReader(payload, 1, end, `${type.kind} (${type.form})`);
  const value = readValue(from, type);
  const valueEnd = from.at;
  skipExtras(from);
  return { type, version, value, valueEnd };
}

/** The string in a payload; null if it holds something else. @throws {TranscodeError} */
export function openString(payload: Buffer): Buffer | null {
  if (payload[0] !== WRITTEN.string) return null;
  checkFooter(payload);
  const from = new PayloadReader(payload, 1, payload.length - FOOTER, 'string (plain)');
  const bytes = from.string();
  skipExtras(from);
  return bytes;
}

function typeOf(payload: Buffer, version: number): TypeByte {
  const isValkey = VALKEY_VERSIONS.includes(version);
  const ofValkey = isValkey ? VALKEY_TYPES.get(payload[0]) : undefined;
  const type = ofValkey ?? TYPES.get(payload[0]);
  if (type) {
    if (isValkey && ofValkey === undefined && type.since > LAST_SHARED_VERSION)
      throw new TranscodeError('TYPE', `type ${payload[0]} of Valkey, which is not known`, 0);
    if (type.since <= version) return type;
    throw new TranscodeError(
      'CORRUPT',
      `type ${payload[0]}, which RDB ${version} does not have`,
      0,
      `${type.kind} (${type.form})`,
    );
  }
  switch (payload[0]) {
    case MODULE:
    case MODULE_2: {
      const id = new PayloadReader(payload, 1, payload.length - FOOTER, 'module').length64();
      throw new TranscodeError('MODULE', `only the module "${moduleName(id)}" can read it`, 0, 'module');
    }
    case KEYDB_CRON:
      throw new TranscodeError('TYPE', 'a KeyDB cron script, which only KeyDB has', 0, 'cron');
    default:
      throw new TranscodeError('TYPE', (!isValkey && REFUSED.get(payload[0])) || `unknown type ${payload[0]}`, 0);
  }
}

/** Nine characters of six bits each, before ten bits of the module's version. */
function moduleName(id: bigint): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return Array.from({ length: 9 }, (_, i) => letters[Number((id >> BigInt(58 - 6 * i)) & 63n)]).join('');
}

function skipExtras(from: PayloadReader): void {
  while (from.left > 0) {
    if (from.u8() !== AUX) from.fail(`${from.left + 1} bytes after the value`);
    const name = from.string().toString('latin1');
    if (name !== KEYDB_TIMESTAMP)
      from.fail(`unknown extra ${JSON.stringify(name.slice(0, 40))} after the value`, 'TYPE');
    from.string();
  }
}

/** Which generation of streams a form is. */
const GENERATIONS: Readonly<Partial<Record<Form, Generation>>> = {
  listpacks: 1,
  'listpacks 2': 2,
  'listpacks 3': 3,
  'listpacks 4': 4,
  'listpacks 5': 5,
};

function readValue(from: PayloadReader, { kind, form }: TypeByte): Value {
  switch (kind) {
    case 'string':
      return { type: 'string', bytes: from.string() };
    case 'list':
      return { type: 'list', items: notEmpty(from, readElements(from, form, 1)) };
    case 'set':
      return { type: 'set', members: distinct(from, notEmpty(from, readElements(from, form, 1)), (member) => member) };
    case 'hash':
      return { type: 'hash', fields: distinct(from, notEmpty(from, readHash(from, form)), ({ field }) => field) };
    case 'zset':
      return { type: 'zset', members: distinct(from, notEmpty(from, readZset(from, form)), ({ member }) => member) };
    case 'stream':
      return readStream(from, GENERATIONS[form]!);
  }
}

/** Strings one after another, from any form; `plain` ones come in groups of `perCount`. */
function readElements(from: PayloadReader, form: Form, perCount: number): Buffer[] {
  const out: Buffer[] = [];
  if (form === 'plain') {
    for (let left = from.count(perCount) * perCount; left > 0; left--) out.push(from.string());
  } else if (form === 'quicklist') {
    for (let nodes = from.count(1); nodes > 0; nodes--) addAll(out, new Ziplist(from.part()));
  } else if (form === 'quicklist 2') {
    for (let nodes = from.count(2); nodes > 0; nodes--) addNode(out, from);
  } else {
    addAll(out, unpack(from.part(), form));
  }
  return out;
}

function unpack(blob: PayloadReader, form: Form): Elements {
  if (form === 'ziplist') return new Ziplist(blob);
  if (form === 'intset') return new Intset(blob);
  return form === 'zipmap' ? new Zipmap(blob) : new Listpack(blob);
}

function addAll(out: Buffer[], elements: Elements): void {
  while (elements.more()) out.push(elements.next());
}

function addNode(out: Buffer[], from: PayloadReader): void {
  const container = from.length();
  if (container === NODE_PACKED) addAll(out, new Listpack(from.part()));
  else if (container === NODE_PLAIN) out.push(from.string());
  else from.fail(`quicklist node of unknown kind ${container}`);
}

function readHash(from: PayloadReader, form: Form): HashField[] {
  if (form === 'field expiry') return readExpiringHash(from, Number(from.int64()) - 1);
  if (form === 'field expiry, first form') return readExpiringHash(from, 0);
  if (form === 'field expiry of Valkey') return readHashOfValkey(from);
  if (form === 'template listpack' || form === 'template array') return readTemplateHash(from, form);
  const expiring = form.startsWith('listpack with expiry');
  if (form === 'listpack with expiry') from.int64(); // the earliest expiry, which follows from the fields
  const flat = readElements(from, form, 2);
  const step = expiring ? 3 : 2;
  if (flat.length % step !== 0) from.fail(`${flat.length} elements that are no whole fields`);
  const fields: HashField[] = [];
  for (let i = 0; i < flat.length; i += step) {
    const [field, value] = [flat[i], flat[i + 1]];
    fields.push(expiring ? withExpiry(from, field, value, parseExpiry(from, flat[i + 2])) : { field, value });
  }
  return fields;
}

/** Each field is preceded by its expiry: 0 for none, else what it is later than `base`. */
function readExpiringHash(from: PayloadReader, base: number): HashField[] {
  const fields: HashField[] = [];
  for (let left = from.count(3); left > 0; left--) {
    const expiry = from.length();
    const field = from.string();
    fields.push(withExpiry(from, field, from.string(), expiry === 0 ? 0 : base + expiry));
  }
  return fields;
}

/** Each field is followed by its value, and by when it expires: -1 for never. */
function readHashOfValkey(from: PayloadReader): HashField[] {
  const fields: HashField[] = [];
  for (let left = from.count(10); left > 0; left--) {
    const [field, value] = [from.string(), from.string()];
    const expireAt = Number(from.int64());
    fields.push(withExpiry(from, field, value, expireAt === -1 ? 0 : expireAt));
  }
  return fields;
}

/** How the names of a template are written: as a listpack, or as a count and strings. */
const [NAMES_PACKED, NAMES_PLAIN] = [0, 1];

/**
 * A hash of Redis 8.10 whose names are those of a template, which DUMP writes along: the form of the names, the names,
 * then the values in the order of the names. A listpack of values begins with the number of the template, which only
 * the server that wrote it knows.
 */
function readTemplateHash(from: PayloadReader, form: Form): HashField[] {
  const names: Buffer[] = [];
  const how = from.length();
  if (how === NAMES_PACKED) addAll(names, new Listpack(from.part()));
  else if (how === NAMES_PLAIN) for (let left = from.count(1); left > 0; left--) names.push(from.string());
  else from.fail(`names of a template in unknown form ${how}`);
  const values: Buffer[] = [];
  if (form === 'template array') {
    for (let left = names.length; left > 0; left--) values.push(from.string());
  } else {
    const pack = new Listpack(from.part());
    pack.integer();
    addAll(values, pack);
  }
  if (values.length !== names.length) from.fail(`${values.length} values for a template of ${names.length} fields`);
  return names.map((field, i) => ({ field, value: values[i] }));
}

function parseExpiry(from: PayloadReader, bytes: Buffer): number {
  const text = bytes.toString('latin1');
  return /^\d+$/.test(text) ? Number(text) : from.fail(`field that expires at ${JSON.stringify(text.slice(0, 40))}`);
}

function withExpiry(from: PayloadReader, field: Buffer, value: Buffer, expireAt: number): HashField {
  if (!(expireAt >= 0 && expireAt <= MAX_FIELD_EXPIRY)) from.fail(`field that expires at ${expireAt}`);
  return expireAt === 0 ? { field, value } : { field, value, expireAt };
}

function readZset(from: PayloadReader, form: Form): ZsetMember[] {
  const members: ZsetMember[] = [];
  if (form === 'plain' || form === 'text scores') {
    for (let left = from.count(2); left > 0; left--) {
      const member = from.string();
      members.push({ member, score: form === 'plain' ? from.double() : readTextScore(from) });
    }
  } else {
    const flat = readElements(from, form, 2);
    if (flat.length % 2 !== 0) from.fail('member without a score');
    for (let i = 0; i < flat.length; i += 2) members.push({ member: flat[i], score: parseScore(from, flat[i + 1]) });
    // Servers search packed members by their order, so what is out of order would answer differently from a sorted
    // copy.
    if (!members.every((member, i) => i === 0 || ascends(members[i - 1], member)))
      from.fail('members out of the order of their scores');
  }
  if (members.some(({ score }) => Number.isNaN(score))) from.fail('score that is not a number');
  return members;
}

function ascends(a: ZsetMember, b: ZsetMember): boolean {
  return a.score < b.score || (a.score === b.score && a.member.compare(b.member) < 0);
}

/** One byte of length and that many digits; 253, 254, 255 stand for NaN and the infinities. */
function readTextScore(from: PayloadReader): number {
  const size = from.u8();
  if (size >= 253) return [NaN, Infinity, -Infinity][size - 253];
  return parseScore(from, from.take(size));
}

function parseScore(from: PayloadReader, bytes: Buffer): number {
  const text = bytes.toString('latin1');
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return Number(text);
  const infinite = /^([+-]?)inf(inity)?$/i.exec(text);
  if (!infinite) from.fail(`score ${JSON.stringify(text.slice(0, 40))}`);
  return infinite![1] === '-' ? -Infinity : Infinity;
}

function notEmpty<T>(from: PayloadReader, elements: T[]): T[] {
  return elements.length > 0 ? elements : from.fail('no elements');
}

/** Servers crash on duplicates that they do not look for. */
function distinct<T>(from: PayloadReader, elements: T[], name: (element: T) => Buffer): T[] {
  if (elements.length === 1) return elements;
  const seen = new Set<string>();
  for (const element of elements) seen.add(name(element).toString('latin1'));
  if (seen.size !== elements.length) from.fail('the same element twice');
  return elements;
}
