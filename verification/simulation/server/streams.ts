/** Commands of streams and their groups. */
import { int64Of, needCount, needInteger } from './numbers.js';
import { lower, Options } from './options.js';
import {
  array,
  arrayOf,
  bulk,
  bulks,
  EMPTY_ARRAY,
  integer,
  mapOf,
  named,
  nil,
  nilArray,
  NO_SUCH_KEY,
  OK,
  ONE,
  Refusal,
  SYNTAX,
  ZERO,
  type Protocol,
} from './reply.js';
import type { Client, Engine, Run, State } from './state.js';
import {
  compareIds,
  formatId,
  MAX_ID,
  nextId,
  pendingInOrder,
  previousId,
  Stream,
  ZERO_ID,
  type Consumer,
  type Group,
  type Id,
  type Pending,
  type StreamEntry,
} from './stream.js';
import { container, unknownSubcommand } from './subcommand.js';

const BAD_ID = new Refusal('ERR Invalid stream ID specified as stream command argument');
/** So many entries a blocked XREAD returns without COUNT. */
const COUNT_WHEN_BLOCKED = 1000;
/** A server trims `~` by nodes of so many entries. */
const NODE_ENTRIES = 100;

function number64(text: string): bigint {
  if (!/^\+?[0-9]{1,25}$/.test(text)) throw BAD_ID;
  const value = BigInt(text.replace('+', ''));
  if (value > MAX_ID.ms) throw BAD_ID;
  return value;
}

/** An ID as it stands; `missing` is the sequence number where there is none. */
function idOf(text: string, missing = 0n): Id {
  const dash = text.indexOf('-');
  if (dash < 0) return { ms: number64(text), seq: missing };
  return { ms: number64(text.slice(0, dash)), seq: number64(text.slice(dash + 1)) };
}

/** An ID as it stands, or `-` or `+`. */
const edgeOf = (text: string, missing = 0n): Id =>
  text === '-' ? ZERO_ID : text === '+' ? MAX_ID : idOf(text, missing);

function startOf(text: string): Id {
  if (text.length < 2 || text[0] !== '(') return edgeOf(text);
  const next = nextId(idOf(text.slice(1)));
  if (next === null) throw new Refusal('ERR invalid start ID for the interval');
  return next;
}

function endOf(text: string): Id {
  if (text.length < 2 || text[0] !== '(') return edgeOf(text, MAX_ID.seq);
  const previous = previousId(idOf(text.slice(1), MAX_ID.seq));
  if (previous === null) throw new Refusal('ERR invalid end ID for the interval');
  return previous;
}

const streamAt = ({ database }: Client, key: string): Stream | undefined => database.getAs(key, 'stream');
const firstId = ({ entries }: Stream): Id => entries[0]?.id ?? ZERO_ID;

const entryReply = ({ id, fields }: StreamEntry): string => arrayOf(2) + bulk(formatId(id)) + bulks(fields);
const entriesReply = (entries: readonly StreamEntry[]): string => array(entries.map(entryReply));

/** Entries from `start` to `end`, at most `count` of them where it is not 0. */
function entriesIn(stream: Stream, start: Id, end: Id, count = 0): StreamEntry[] {
  const from = stream.indexOf(start);
  const next = nextId(end);
  const to = next === null ? stream.entries.length : stream.indexOf(next);
  return stream.entries.slice(from, count === 0 ? to : Math.min(to, from + count));
}

interface Trim {
  readonly maxLength: number | null;
  readonly minId: Id | null;
  readonly isApproximate: boolean;
  readonly limit: number;
}

interface AddOptions {
  readonly trim: Trim | null;
  readonly makes: boolean;
  /** Where the ID is, for XADD. */
  readonly at: number;
}

/** `5-*`: the server chooses the sequence number, since Redis 7. */
const hasAutoSequence = (text: string, engine: Engine): boolean => engine === 'redis' && text.endsWith('-*');

/** The options of XADD and XTRIM. @throws {Refusal} */
function addOptions(args: readonly string[], isAdd: boolean, engine: Engine): AddOptions {
  let [maxLength, minId, isApproximate, limit, makes]: [number | null, Id | null, boolean, number | null, boolean] = [
    null, null, false, null, true,
  ]; // prettier-ignore
  let at = 2;
  for (; at < args.length; at++) {
    const word = lower(args[at]);
    const more = args.length - 1 - at;
    if (isAdd && word === '*') break;
    if ((word === 'maxlen' || word === 'minid') && more > 0) {
      if (maxLength !== null || minId !== null)
        throw new Refusal('ERR syntax error, MAXLEN and MINID options at the same time are not compatible');
      if (more >= 2 && (args[at + 1] === '~' || args[at + 1] === '=')) isApproximate = args[++at] === '~';
      at++;
      if (word === 'minid') minId = idOf(args[at]);
      else {
        maxLength = needInteger(args[at]);
        if (maxLength < 0) throw new Refusal('ERR The MAXLEN argument must be >= 0.');
      }
    } else if (word === 'limit' && more > 0) {
      limit = needInteger(args[++at]);
      if (limit < 0) throw new Refusal('ERR The LIMIT argument must be >= 0.');
    } else if (isAdd && word === 'nomkstream') makes = false;
    else if (isAdd) {
      if (!hasAutoSequence(args[at], engine)) idOf(args[at]);
      break;
    } else throw SYNTAX;
  }
  const trims = maxLength !== null || minId !== null;
  if (limit !== null && limit > 0 && !trims)
    throw new Refusal('ERR syntax error, LIMIT cannot be used without specifying a trimming strategy');
  if (!isAdd && !trims) throw new Refusal('ERR syntax error, XTRIM must be called with a trimming strategy');
  if (limit !== null && !isApproximate)
    throw new Refusal('ERR syntax error, LIMIT cannot be used without the special ~ option');
  const most = limit ?? (isApproximate ? 100 * NODE_ENTRIES : 0);
  return { trim: trims ? { maxLength, minId, isApproximate, limit: most } : null, makes, at };
}

/** Removes the oldest entries; returns how many. */
function trim(stream: Stream, { maxLength, minId, isApproximate, limit }: Trim): number {
  const { entries } = stream;
  const isOld = (at: number): boolean =>
    minId === null ? entries.length - at > maxLength! : compareIds(entries[at].id, minId) < 0;
  let count = 0;
  if (!isApproximate) {
    while (count < entries.length && isOld(count)) count++;
  } else {
    // A node goes as a whole or not at all.
    for (
      let to = Math.min(NODE_ENTRIES, entries.length);
      count < to;
      to = Math.min(to + NODE_ENTRIES, entries.length)
    ) {
      if (!isOld(to - 1) || (limit > 0 && to > limit)) break;
      count = to;
    }
  }
  entries.splice(0, count);
  return count;
}

const add: Run = (client, args) => {
  const { database, server } = client;
  const isRedis = server.engine === 'redis';
  const [, key] = args;
  const options = addOptions(args, true, server.engine);
  const { at } = options;
  const given = args[at];
  const isAuto = given === '*';
  const autoSequence = given !== undefined && hasAutoSequence(given, server.engine);
  const id = given === undefined || isAuto ? null : idOf(autoSequence ? given.slice(0, -2) : given);
  const count = args.length - at - 1;
  if (count < 2 || count % 2 === 1)
    throw new Refusal(
      isRedis ? "ERR wrong number of arguments for 'xadd' command" : 'ERR wrong number of arguments for XADD',
    );
  if (id !== null && !autoSequence && compareIds(id, ZERO_ID) === 0)
    throw new Refusal('ERR The ID specified in XADD must be greater than 0-0');
  let stream = streamAt(client, key);
  if (stream === undefined) {
    if (!options.makes) return nil(client.protocol);
    database.add(key, 'stream', (stream = new Stream()));
  }
  if (compareIds(stream.lastId, MAX_ID) === 0)
    throw new Refusal('ERR The stream has exhausted the last possible ID, unable to add more items');
  const next = id === null ? automatic(stream, server) : autoSequence ? sequence(stream, id) : id;
  if (next === null || compareIds(next, stream.lastId) <= 0)
    throw new Refusal('ERR The ID specified in XADD is equal or smaller than the target stream top item');
  stream.entries.push({ id: next, fields: args.slice(at + 1) });
  stream.lastId = next;
  stream.entriesAdded++;
  database.touch(key);
  if (options.trim !== null) trim(stream, options.trim);
  database.ready(key);
  return bulk(formatId(next));
};

function automatic({ lastId }: Stream, { now }: State): Id {
  const ms = BigInt(now);
  return ms > lastId.ms ? { ms, seq: 0n } : nextId(lastId)!;
}

/** The first free sequence number of that millisecond; null where there is none. */
function sequence({ lastId }: Stream, { ms }: Id): Id | null {
  if (ms !== lastId.ms) return { ms, seq: 0n };
  return lastId.seq === MAX_ID.seq ? null : { ms, seq: lastId.seq + 1n };
}

const range =
  (isReverse: boolean): Run =>
  (client, args) => {
    const [, key, first, second] = args;
    const start = startOf(isReverse ? second : first);
    const end = endOf(isReverse ? first : second);
    let count: number | null = null;
    const options = new Options(args, 4);
    while (options.more) {
      if (options.word() !== 'count' || !options.more) throw SYNTAX;
      count = Math.max(0, needInteger(options.next()));
    }
    const stream = streamAt(client, key);
    if (stream === undefined) return EMPTY_ARRAY;
    if (count === 0) return nilArray(client.protocol);
    const found = compareIds(start, end) > 0 ? [] : entriesIn(stream, start, end);
    if (isReverse) found.reverse();
    return entriesReply(count === null ? found : found.slice(0, count));
  };

// Reading

interface Read {
  readonly group: string | null;
  readonly consumer: string;
  readonly noAck: boolean;
  readonly count: number;
  readonly block: number | null;
  readonly keys: readonly string[];
  readonly ids: readonly string[];
}

function readOptions(args: readonly string[], isGroup: boolean): Read {
  let [group, consumer, noAck, count, block]: [string | null, string, boolean, number, number | null] = [
    null, '', false, 0, null,
  ]; // prettier-ignore
  const onlyGroup = (option: string): void => {
    if (!isGroup)
      throw new Refusal(`ERR The ${option} option is only supported by XREADGROUP. You called XREAD instead.`);
  };
  const options = new Options(args, 1);
  while (options.more) {
    const word = options.word();
    if (word === 'block' && options.more) {
      block = needInteger(options.next(), new Refusal('ERR timeout is not an integer or out of range'));
      if (block < 0) throw new Refusal('ERR timeout is negative');
    } else if (word === 'count' && options.more) count = Math.max(0, needInteger(options.next()));
    else if (word === 'group' && options.left >= 2) {
      onlyGroup('GROUP');
      [group, consumer] = [options.next(), options.next()];
    } else if (word === 'noack') {
      onlyGroup('NOACK');
      noAck = true;
    } else if (word === 'streams' && options.more) {
      const rest = options.rest();
      if (rest.length % 2 === 1)
        throw new Refusal("ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.");
      if (isGroup && group === null) throw new Refusal('ERR Missing GROUP option for XREADGROUP');
      const half = rest.length / 2;
      return { group, consumer, noAck, count, block, keys: rest.slice(0, half), ids: rest.slice(half) };
    } else throw SYNTAX;
  }
  throw SYNTAX;
}

/** Where a reader stands in a stream: behind an ID, or, for a group, at what is new to it. */
type Position = Id | 'new';

function positionOf(client: Client, key: string, text: string, read: Read): Position {
  const stream = streamAt(client, key);
  if (read.group !== null && stream?.groups.has(read.group) !== true)
    throw new Refusal(`NOGROUP No such key '${key}' or consumer group '${read.group}' in XREADGROUP with GROUP option`);
  if (text === '$') {
    if (read.group !== null)
      throw new Refusal(
        'ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.',
      );
    return stream?.lastId ?? ZERO_ID;
  }
  if (text === '>') {
    if (read.group === null)
      throw new Refusal(
        'ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.',
      );
    return 'new';
  }
  return idOf(text);
}

const read =
  (isGroup: boolean): Run =>
  (client, args) => {
    const { protocol } = client;
    const options = readOptions(args, isGroup);
    const { keys, ids, block } = options;
    const positions = keys.map((key, i) => positionOf(client, key, ids[i], options));
    const replies: string[] = [];
    keys.forEach((key, i) => {
      const found = served(client, key, positions[i], options);
      if (found !== null) replies.push(streamReply(key, found, protocol));
    });
    if (replies.length > 0) return mapOrArray(replies, protocol);
    if (block === null || client.mayNotBlock) return nilArray(protocol);
    const waiting = { ...options, count: options.count === 0 ? COUNT_WHEN_BLOCKED : options.count };
    client.block(
      {
        type: 'stream',
        keys,
        serve(key) {
          const found = servedLater(client, key, positions[keys.indexOf(key)], waiting);
          return found === null ? null : mapOrArray([streamReply(key, found, protocol)], protocol);
        },
        atTimeout: nilArray(protocol),
      },
      block,
    );
    return '';
  };

const streamReply = (key: string, entries: string, protocol: Protocol): string =>
  (protocol === 2 ? arrayOf(2) : '') + bulk(key) + entries;
const mapOrArray = (replies: readonly string[], protocol: Protocol): string =>
  (protocol === 2 ? arrayOf(replies.length) : mapOf(replies.length, protocol)) + replies.join('');

/** The entries for a reader, as a reply; null where there are none. */
function served(client: Client, key: string, position: Position, options: Read): string | null {
  const stream = streamAt(client, key);
  if (stream === undefined) return null;
  const last = stream.entries[stream.entries.length - 1]?.id;
  if (options.group === null) {
    if (last === undefined || compareIds(last, position as Id) <= 0) return null;
    return entriesReply(entriesIn(stream, nextId(position as Id)!, MAX_ID, options.count));
  }
  const group = stream.groups.get(options.group)!;
  if (position !== 'new') return history(client, stream, group, position, options);
  if (last === undefined || compareIds(last, group.lastId) <= 0) return null;
  return deliver(client, stream, group, options);
}

/** What a blocked reader gets once the key is ready. */
function servedLater(client: Client, key: string, position: Position, options: Read): string | null {
  const { database, server } = client;
  const entry = database.get(key);
  if (entry?.type !== 'stream') {
    if (options.group === null || server.engine === 'keydb') return null;
    throw new Refusal('UNBLOCKED the stream key no longer exists');
  }
  const stream = entry.value as Stream;
  if (options.group === null) {
    if (compareIds(stream.lastId, position as Id) <= 0) return null;
    return entriesReply(entriesIn(stream, nextId(position as Id)!, MAX_ID, options.count));
  }
  const group = stream.groups.get(options.group);
  if (group === undefined) throw new Refusal('NOGROUP the consumer group this client was blocked on no longer exists');
  if (compareIds(stream.lastId, group.lastId) <= 0) return null;
  return deliver(client, stream, group, options);
}

function consumerOf({ server }: Client, group: Group, name: string): Consumer {
  let consumer = group.consumers.get(name);
  if (consumer === undefined) group.consumers.set(name, (consumer = { name, seenAt: 0, pending: new Map() }));
  consumer.seenAt = server.now;
  return consumer;
}

/** New entries for a consumer of the group. */
function deliver(client: Client, stream: Stream, group: Group, { consumer: name, noAck, count }: Read): string {
  const consumer = consumerOf(client, group, name);
  const entries = entriesIn(stream, nextId(group.lastId)!, MAX_ID, count);
  for (const { id } of entries) {
    group.entriesRead =
      group.entriesRead !== null && !hasTombstones(stream, id) ? group.entriesRead + 1 : distance(stream, id);
    group.lastId = id;
    if (!noAck) assign(client, group, consumer, id);
  }
  return entriesReply(entries);
}

function assign({ server }: Client, group: Group, consumer: Consumer, id: Id): void {
  const name = formatId(id);
  group.pending.get(name)?.consumer.pending.delete(name);
  const pending = { id, consumer, deliveredAt: server.now, deliveries: 1 };
  group.pending.set(name, pending);
  consumer.pending.set(name, pending);
}

/** What is pending for a consumer, behind an ID. */
function history(client: Client, stream: Stream, group: Group, after: Id, options: Read): string {
  const consumer = consumerOf(client, group, options.consumer);
  const from = nextId(after);
  let pending = from === null ? [] : pendingInOrder(consumer.pending).filter(({ id }) => compareIds(id, from) >= 0);
  if (options.count > 0) pending = pending.slice(0, options.count);
  return array(
    pending.map((each) => {
      const entry = stream.find(each.id);
      if (entry === undefined) return arrayOf(2) + bulk(formatId(each.id)) + nilArray(client.protocol);
      each.deliveredAt = client.server.now;
      each.deliveries++;
      return entryReply(entry);
    }),
  );
}

/** Whether an entry from `start` on was deleted by XDEL. */
function hasTombstones(stream: Stream, start: Id): boolean {
  const { maxDeletedId } = stream;
  if (stream.entries.length === 0 || compareIds(maxDeletedId, ZERO_ID) === 0) return false;
  if (compareIds(firstId(stream), maxDeletedId) > 0) return false;
  return compareIds(start, maxDeletedId) <= 0;
}

/** How many entries were added up to the ID; null where Redis does not know. */
function distance(stream: Stream, id: Id): number | null {
  if (stream.entriesAdded === 0) return 0;
  const isEmpty = stream.entries.length === 0;
  const toLast = compareIds(id, stream.lastId);
  if (isEmpty && toLast < 1) return stream.entriesAdded;
  if (toLast === 0) return stream.entriesAdded;
  if (toLast > 0) return null;
  const first = firstId(stream);
  if (compareIds(stream.maxDeletedId, ZERO_ID) === 0 || compareIds(stream.maxDeletedId, first) < 0) {
    const toFirst = compareIds(id, first);
    if (toFirst < 0) return stream.entriesAdded - stream.entries.length;
    if (toFirst === 0) return stream.entriesAdded - stream.entries.length + 1;
  }
  return null;
}

function lag(stream: Stream, group: Group): number | null {
  if (stream.entriesAdded === 0) return 0;
  if (group.entriesRead !== null && !hasTombstones(stream, group.lastId))
    return stream.entriesAdded - group.entriesRead;
  const reads = distance(stream, group.lastId);
  return reads === null ? null : stream.entriesAdded - reads;
}

// Groups

const noGroup = (key: string, group: string): Refusal =>
  new Refusal(`NOGROUP No such key '${key}' or consumer group '${group}'`);

function needGroup(client: Client, key: string, name: string): { stream: Stream; group: Group } {
  const stream = streamAt(client, key);
  const group = stream?.groups.get(name);
  if (stream === undefined || group === undefined) throw noGroup(key, name);
  return { stream, group };
}

const needKey = (client: Client, key: string): Stream => {
  const stream = streamAt(client, key);
  if (stream === undefined)
    throw new Refusal(
      'ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.',
    );
  return stream;
};

function groupIn(stream: Stream, key: string, name: string): Group {
  const group = stream.groups.get(name);
  if (group === undefined) throw new Refusal(`NOGROUP No such consumer group '${name}' for key name '${key}'`);
  return group;
}

/** MKSTREAM and ENTRIESREAD, the options of Redis; KeyDB has the first, and nothing behind it. */
function groupOptions({ server }: Client, args: readonly string[], mayMake: boolean) {
  let [makes, entriesRead]: [boolean, number | null] = [false, null];
  if (server.engine === 'keydb') {
    if (mayMake && args.length === 6) {
      if (lower(args[5]) !== 'mkstream') throw unknownSubcommand(server, args);
      makes = true;
    }
    return { makes, entriesRead };
  }
  const options = new Options(args, 5);
  while (options.more) {
    const word = options.word();
    if (word === 'mkstream' && mayMake) makes = true;
    else if (word === 'entriesread' && options.more) {
      const value = needInteger(options.next());
      if (value < -1) throw new Refusal('ERR value for ENTRIESREAD must be positive or -1');
      entriesRead = value === -1 ? null : value;
    } else throw unknownSubcommand(server, args);
  }
  return { makes, entriesRead };
}

const group = container({
  create(client, args) {
    const [, , key, name, text] = args;
    const { makes, entriesRead } = groupOptions(client, args, true);
    let stream = makes ? streamAt(client, key) : needKey(client, key);
    if (client.server.engine === 'keydb' && args.length > 6) throw unknownSubcommand(client.server, args);
    const lastId = text === '$' ? (stream?.lastId ?? ZERO_ID) : idOf(text);
    if (stream === undefined) {
      client.database.add(key, 'stream', (stream = new Stream()));
      client.database.touch(key);
    }
    if (stream.groups.has(name)) throw new Refusal('BUSYGROUP Consumer Group name already exists');
    stream.groups.set(name, { name, lastId, entriesRead, consumers: new Map(), pending: new Map() });
    return OK;
  },
  setid(client, args) {
    const [, , key, name, text] = args;
    const { entriesRead } = groupOptions(client, args, false);
    const stream = needKey(client, key);
    const found = groupIn(stream, key, name);
    found.lastId = text === '$' ? stream.lastId : edgeOf(text);
    found.entriesRead = entriesRead;
    return OK;
  },
  destroy(client, [, , key, name]) {
    if (!needKey(client, key).groups.delete(name)) return ZERO;
    client.database.ready(key);
    return ONE;
  },
  createconsumer(client, [, , key, name, consumer]) {
    const found = groupIn(needKey(client, key), key, name);
    if (found.consumers.has(consumer)) return ZERO;
    consumerOf(client, found, consumer);
    return ONE;
  },
  delconsumer(client, [, , key, name, consumer]) {
    const found = groupIn(needKey(client, key), key, name);
    const leaving = found.consumers.get(consumer);
    if (leaving === undefined) return ZERO;
    for (const id of leaving.pending.keys()) found.pending.delete(id);
    found.consumers.delete(consumer);
    return integer(leaving.pending.size);
  },
});

const acknowledge: Run = (client, args) => {
  const found = streamAt(client, args[1])?.groups.get(args[2]);
  if (found === undefined) return ZERO;
  const ids = args.slice(3).map((text) => formatId(idOf(text)));
  let count = 0;
  for (const id of ids) if (forget(found, id)) count++;
  return integer(count);
};

/** Removes a pending entry of the group. */
function forget(from: Group, id: string): boolean {
  const pending = from.pending.get(id);
  if (pending === undefined) return false;
  from.pending.delete(id);
  return pending.consumer.pending.delete(id);
}

const claim: Run = (client, args) => {
  const { server } = client;
  const [, key, name, consumerName, minimum] = args;
  const { stream, group: found } = needGroup(client, key, name);
  const minIdle = Math.max(0, needInteger(minimum, new Refusal('ERR Invalid min-idle-time argument for XCLAIM')));
  const ids: Id[] = [];
  let at = 5;
  for (; at < args.length; at++) {
    try {
      ids.push(idOf(args[at]));
    } catch {
      break;
    }
  }
  let [force, justId, retries, deliveredAt, lastId]: [boolean, boolean, number, number | null, Id] = [
    false, false, -1, null, ZERO_ID,
  ]; // prettier-ignore
  const options = new Options(args, at);
  while (options.more) {
    const given = options.next();
    const word = lower(given);
    const value = (): number =>
      needInteger(options.next(), new Refusal(`ERR Invalid ${word.toUpperCase()} option argument for XCLAIM`));
    if (word === 'force') force = true;
    else if (word === 'justid') justId = true;
    else if (word === 'idle' && options.more) deliveredAt = server.now - value();
    else if (word === 'time' && options.more) deliveredAt = value();
    else if (word === 'retrycount' && options.more) retries = value();
    else if (word === 'lastid' && options.more) lastId = idOf(options.next());
    else throw new Refusal(`ERR Unrecognized XCLAIM option '${given}'`);
  }
  if (compareIds(lastId, found.lastId) > 0) found.lastId = lastId;
  // A time of -1 counts as none.
  if (deliveredAt === null || deliveredAt < 0 || deliveredAt > server.now) deliveredAt = server.now;
  const replies: string[] = [];
  for (const id of ids) {
    const text = formatId(id);
    const entry = stream.find(id);
    let pending = found.pending.get(text);
    if (entry === undefined && server.engine === 'redis') {
      forget(found, text);
      continue;
    }
    if (pending === undefined) {
      if (!force || entry === undefined) continue;
      // A consumer of no name, until it is taken over below.
      pending = { id, consumer: NOBODY, deliveredAt: server.now, deliveries: 1 };
      found.pending.set(text, pending);
    } else if (minIdle > 0 && server.now - pending.deliveredAt < minIdle) continue;
    takeOver(client, found, pending, consumerName);
    pending.deliveredAt = deliveredAt;
    if (retries >= 0) pending.deliveries = retries;
    else if (!justId) pending.deliveries++;
    replies.push(claimed(client, entry, id, justId));
  }
  return array(replies);
};

const NOBODY: Consumer = { name: '', seenAt: 0, pending: new Map() };

function takeOver(client: Client, from: Group, pending: Pending, name: string): void {
  const consumer = consumerOf(client, from, name);
  if (pending.consumer === consumer) return;
  const id = formatId(pending.id);
  pending.consumer.pending.delete(id);
  consumer.pending.set(id, pending);
  pending.consumer = consumer;
}

const claimed = ({ protocol }: Client, entry: StreamEntry | undefined, id: Id, justId: boolean): string =>
  justId ? bulk(formatId(id)) : entry === undefined ? nil(protocol) : entryReply(entry);

const autoclaim: Run = (client, args) => {
  const { server } = client;
  const [, key, name, consumerName, minimum] = args;
  const isRedis = server.engine === 'redis';
  const minIdle = Math.max(0, needInteger(minimum, new Refusal('ERR Invalid min-idle-time argument for XAUTOCLAIM')));
  const start = startOf(args[5]);
  let [count, justId] = [100, false];
  const options = new Options(args, 6);
  while (options.more) {
    const word = options.word();
    if (word === 'count' && options.more) count = needCount(options.next(), new Refusal('ERR COUNT must be > 0'));
    else if (word === 'justid') justId = true;
    else throw SYNTAX;
  }
  const { stream, group: found } = needGroup(client, key, name);
  const pending = pendingInOrder(found.pending).filter(({ id }) => compareIds(id, start) >= 0);
  const [replies, deleted]: [string[], string[]] = [[], []];
  let attempts = count * 10;
  let at = 0;
  for (; at < pending.length && count > 0 && attempts > 0; at++, attempts--) {
    const each = pending[at];
    const entry = stream.find(each.id);
    if (entry === undefined && isRedis) {
      forget(found, formatId(each.id));
      deleted.push(formatId(each.id));
      count--;
      continue;
    }
    if (minIdle > 0 && server.now - each.deliveredAt < minIdle) continue;
    takeOver(client, found, each, consumerName);
    each.deliveredAt = server.now;
    if (!justId) each.deliveries++;
    replies.push(claimed(client, entry, each.id, justId));
    count--;
  }
  const next = pending[at]?.id ?? ZERO_ID;
  return array([bulk(formatId(next)), array(replies), ...(isRedis ? [bulks(deleted)] : [])]);
};

const pendingOf: Run = (client, args) => {
  const { protocol, server } = client;
  if (args.length !== 3 && (args.length < 6 || args.length > 9)) throw SYNTAX;
  let at = 3;
  let [minIdle, count, start, end] = [0, 0, ZERO_ID, MAX_ID];
  if (args.length >= 6) {
    if (lower(args[3]) === 'idle') {
      minIdle = needInteger(args[4]);
      if (args.length < 8) throw SYNTAX;
      at += 2;
    }
    count = Math.max(0, needInteger(args[at + 2]));
    start = startOf(args[at]);
    end = endOf(args[at + 1]);
  }
  const { group: found } = needGroup(client, args[1], args[2]);
  if (args.length === 3) return summary(found, protocol);
  const consumerName = args[at + 3];
  const consumer = consumerName === undefined ? undefined : found.consumers.get(consumerName);
  if (consumerName !== undefined && consumer === undefined) return EMPTY_ARRAY;
  const rows = pendingInOrder((consumer ?? found).pending)
    .filter(({ id }) => compareIds(id, start) >= 0 && compareIds(id, end) <= 0)
    .map((each) => ({ ...each, idle: server.now - each.deliveredAt }))
    .filter(({ idle }) => minIdle === 0 || idle >= minIdle)
    .slice(0, count);
  return array(
    rows.map(
      ({ id, consumer: by, idle, deliveries }) =>
        arrayOf(4) + bulk(formatId(id)) + bulk(by.name) + integer(Math.max(0, idle)) + integer(deliveries),
    ),
  );
};

const byName = <T extends { readonly name: string }>(from: ReadonlyMap<string, T>): T[] =>
  [...from.values()].sort((a, b) => (a.name < b.name ? -1 : 1));

function summary(found: Group, protocol: Protocol): string {
  const pending = pendingInOrder(found.pending);
  if (pending.length === 0) return arrayOf(4) + ZERO + nil(protocol) + nil(protocol) + nilArray(protocol);
  const consumers = byName(found.consumers).filter((consumer) => consumer.pending.size > 0);
  return (
    arrayOf(4) +
    integer(pending.length) +
    bulk(formatId(pending[0].id)) +
    bulk(formatId(pending[pending.length - 1].id)) +
    array(consumers.map(({ name, pending: own }) => bulks([name, String(own.size)])))
  );
}

// XINFO

const orNil = (value: number | null, protocol: Protocol): string => (value === null ? nil(protocol) : integer(value));

function streamInfo(client: Client, args: readonly string[]): string {
  const { protocol, server } = client;
  const isRedis = server.engine === 'redis';
  const stream = streamAt(client, args[2]);
  if (stream === undefined) throw NO_SUCH_KEY;
  const full = args.length > 3;
  let count = 10;
  if (full) {
    if ((args.length !== 4 && args.length !== 6) || lower(args[3]) !== 'full') throw unknownSubcommand(server, args);
    if (args.length === 6) {
      if (lower(args[4]) !== 'count') throw unknownSubcommand(server, args);
      count = needInteger(args[5]);
      if (count < 0) count = 10;
    }
  }
  const nodes = Math.ceil(stream.entries.length / NODE_ENTRIES);
  const fields: [string, string][] = [
    ['length', integer(stream.entries.length)],
    ['radix-tree-keys', integer(nodes)],
    ['radix-tree-nodes', integer(nodes + 1)],
    ['last-generated-id', bulk(formatId(stream.lastId))],
  ];
  if (isRedis)
    fields.push(
      ['max-deleted-entry-id', bulk(formatId(stream.maxDeletedId))],
      ['entries-added', integer(stream.entriesAdded)],
      ['recorded-first-entry-id', bulk(formatId(firstId(stream)))],
    );
  const { entries } = stream;
  if (full) {
    fields.push(['entries', entriesReply(count === 0 ? entries : entries.slice(0, count))]);
    fields.push(['groups', array(byName(stream.groups).map((each) => fullGroup(client, stream, each, count)))]);
  } else {
    const entry = (each: StreamEntry | undefined): string => (each === undefined ? nil(protocol) : entryReply(each));
    fields.push(['groups', integer(stream.groups.size)]);
    fields.push(['first-entry', entry(entries[0])], ['last-entry', entry(entries[entries.length - 1])]);
  }
  return named(fields, protocol);
}

function fullGroup({ protocol, server }: Client, stream: Stream, each: Group, count: number): string {
  const isRedis = server.engine === 'redis';
  const limited = (pending: ReadonlyMap<string, Pending>): Pending[] =>
    pendingInOrder(pending).slice(0, count === 0 ? undefined : count);
  const rows = limited(each.pending).map(
    ({ id, consumer, deliveredAt, deliveries }) =>
      arrayOf(4) + bulk(formatId(id)) + bulk(consumer.name) + integer(deliveredAt) + integer(deliveries),
  );
  const consumers = byName(each.consumers).map((consumer) =>
    named(
      [
        ['name', bulk(consumer.name)],
        ['seen-time', integer(consumer.seenAt)],
        ['pel-count', integer(consumer.pending.size)],
        [
          'pending',
          array(
            limited(consumer.pending).map(
              ({ id, deliveredAt, deliveries }) =>
                arrayOf(3) + bulk(formatId(id)) + integer(deliveredAt) + integer(deliveries),
            ),
          ),
        ],
      ],
      protocol,
    ),
  );
  const counters: [string, string][] = isRedis
    ? [
        ['entries-read', orNil(each.entriesRead, protocol)],
        ['lag', orNil(lag(stream, each), protocol)],
      ]
    : [];
  return named(
    [
      ['name', bulk(each.name)],
      ['last-delivered-id', bulk(formatId(each.lastId))],
      ...counters,
      ['pel-count', integer(each.pending.size)],
      ['pending', array(rows)],
      ['consumers', array(consumers)],
    ],
    protocol,
  );
}

const info = container({
  stream: streamInfo,
  groups(client, args) {
    const { protocol, server } = client;
    const stream = streamAt(client, args[2]);
    if (stream === undefined) throw NO_SUCH_KEY;
    return array(
      byName(stream.groups).map((each) =>
        named(
          [
            ['name', bulk(each.name)],
            ['consumers', integer(each.consumers.size)],
            ['pending', integer(each.pending.size)],
            ['last-delivered-id', bulk(formatId(each.lastId))],
            ...(server.engine === 'redis'
              ? ([
                  ['entries-read', orNil(each.entriesRead, protocol)],
                  ['lag', orNil(lag(stream, each), protocol)],
                ] as const)
              : []),
          ],
          protocol,
        ),
      ),
    );
  },
  consumers(client, args) {
    const { protocol, server } = client;
    const stream = streamAt(client, args[2]);
    if (stream === undefined) throw NO_SUCH_KEY;
    return array(
      byName(groupIn(stream, args[2], args[3]).consumers).map(({ name, pending, seenAt }) =>
        named(
          [
            ['name', bulk(name)],
            ['pending', integer(pending.size)],
            ['idle', integer(Math.max(0, server.now - seenAt))],
          ],
          protocol,
        ),
      ),
    );
  },
});

/** XSETID. Redis reads its options before it looks for the key, KeyDB looks first. */
const setId: Run = (client, args) => {
  const { server } = client;
  const isRedis = server.engine === 'redis';
  if (!isRedis && streamAt(client, args[1]) === undefined) throw NO_SUCH_KEY;
  const id = idOf(args[2]);
  let [entriesAdded, maxDeletedId]: [number | null, Id] = [null, ZERO_ID];
  const options = new Options(args, 3);
  while (options.more) {
    const word = options.word();
    if (word === 'entriesadded' && options.more) {
      const value = int64Of(options.next());
      if (value === null) throw new Refusal('ERR value is not an integer or out of range');
      if (value < 0n) throw new Refusal('ERR entries_added must be positive');
      entriesAdded = Number(value);
    } else if (word === 'maxdeletedid' && options.more) {
      maxDeletedId = idOf(options.next());
      if (compareIds(id, maxDeletedId) < 0)
        throw new Refusal('ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id');
    } else throw SYNTAX;
  }
  const stream = streamAt(client, args[1]);
  if (stream === undefined) throw NO_SUCH_KEY;
  const last = stream.entries[stream.entries.length - 1];
  if (last !== undefined) {
    if (compareIds(id, last.id) < 0)
      throw new Refusal('ERR The ID specified in XSETID is smaller than the target stream top item');
    if (entriesAdded !== null && stream.entries.length > entriesAdded)
      throw new Refusal('ERR The entries_added specified in XSETID is smaller than the target stream length');
  }
  stream.lastId = id;
  if (entriesAdded !== null) stream.entriesAdded = entriesAdded;
  if (compareIds(maxDeletedId, ZERO_ID) !== 0) stream.maxDeletedId = maxDeletedId;
  return OK;
};

export const STREAM_COMMANDS: Readonly<Record<string, Run>> = {
  xadd: add,
  xlen: (client, [, key]) => integer(streamAt(client, key)?.entries.length ?? 0),
  xrange: range(false),
  xrevrange: range(true),
  xread: read(false),
  xreadgroup: read(true),
  xdel(client, args) {
    const stream = streamAt(client, args[1]);
    if (stream === undefined) return ZERO;
    const ids = args.slice(2).map((text) => idOf(text));
    let count = 0;
    for (const id of ids) {
      const at = stream.indexOf(id);
      if (stream.find(id) === undefined) continue;
      stream.entries.splice(at, 1);
      if (compareIds(id, stream.maxDeletedId) > 0) stream.maxDeletedId = id;
      count++;
    }
    if (count > 0) client.database.touch(args[1]);
    return integer(count);
  },
  xtrim(client, args) {
    const options = addOptions(args, false, client.server.engine);
    const stream = streamAt(client, args[1]);
    if (stream === undefined) return ZERO;
    const count = trim(stream, options.trim!);
    if (count > 0) client.database.touch(args[1]);
    return integer(count);
  },
  xgroup: group,
  xack: acknowledge,
  xclaim: claim,
  xautoclaim: autoclaim,
  xpending: pendingOf,
  xinfo: info,
  xsetid: setId,
};
