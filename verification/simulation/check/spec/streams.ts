/** Streams and their groups, without what trims or deletes entries. */
import type { Reply } from '../../clients/replies.js';
import { Refused, type Run, type Space, type Stream } from './space.js';

const idOf = (text: string): readonly [bigint, bigint] => {
  const [ms, sequence = '0'] = text.split('-');
  return [BigInt(ms), BigInt(sequence)];
};

/** Whether the ID is behind the other. */
function isAfter(one: string, other: string): boolean {
  const [a, b] = [idOf(one), idOf(other)];
  return a[0] > b[0] || (a[0] === b[0] && a[1] > b[1]);
}

const shown = (entries: Stream['entries']): Reply =>
  entries.map(([id, ...fields]) => [`$${id}`, fields.map((field) => `$${field}`)]);

function groupOf(space: Space, key: string, name: string): readonly [Stream, Stream['groups'][string]] {
  const stream = space.get(key, 'stream');
  const group = stream?.groups[name];
  if (stream === null || group === undefined) throw new Refused('NOGROUP');
  return [stream, group];
}

const add: Run = (space, args) => {
  const [key, words] = [args[1], args.slice(2)];
  const mayMake = words[0] !== 'NOMKSTREAM';
  if (!mayMake) words.shift();
  const stream = space.get(key, 'stream') ?? { entries: [], last: '0-0', groups: {} };
  if (!mayMake && !space.has(key)) return null;
  const [asked, ...fields] = words;
  const { observed } = space;
  // An ID of the server's own is any that is higher than the last.
  const id = asked === '*' && typeof observed === 'string' ? observed.slice(1) : asked;
  if (!/^\d+-\d+$/.test(id) || !isAfter(id, stream.last)) throw new Refused('ERR');
  stream.entries.push([id, ...fields]);
  stream.last = id;
  space.put(key, 'stream', stream);
  return `$${id}`;
};

const group: Run = (space, [, what, key, name, id]) => {
  const stream = space.get(key, 'stream');
  const last = id === '$' ? (stream?.last ?? '0-0') : '0-0';
  if (what === 'SETID') {
    const [, found] = groupOf(space, key, name);
    found.last = last;
    return '+OK';
  }
  if (stream?.groups[name] !== undefined) throw new Refused('BUSYGROUP');
  const made = stream ?? { entries: [], last: '0-0', groups: {} };
  made.groups[name] = { last, pending: {} };
  space.put(key, 'stream', made);
  return '+OK';
};

const readGroup: Run = (space, args) => {
  const [consumer, key, from] = [args[3], args[args.length - 2], args[args.length - 1]];
  const [stream, found] = groupOf(space, key, args[2]);
  const count = args.includes('COUNT') ? Number(args[args.indexOf('COUNT') + 1]) : Infinity;
  if (from !== '>') {
    const own = stream.entries.filter(([id]) => found.pending[id] === consumer).slice(0, count);
    return [[`$${key}`, shown(own)]];
  }
  const next = stream.entries.filter(([id]) => isAfter(id, found.last)).slice(0, count);
  if (next.length === 0) return null;
  found.last = next[next.length - 1][0];
  if (!args.includes('NOACK')) for (const [id] of next) found.pending[id] = consumer;
  return [[`$${key}`, shown(next)]];
};

export const STREAM_RUNS: Readonly<Record<string, Run>> = {
  XADD: add,
  XGROUP: group,
  XREADGROUP: readGroup,
  XLEN: (space, [, key]) => space.get(key, 'stream')?.entries.length ?? 0,
  XRANGE: (space, [, key]) => shown(space.get(key, 'stream')?.entries ?? []),
  XREAD(space, args) {
    const entries = space.get(args[4], 'stream')?.entries ?? [];
    return entries.length === 0 ? null : [[`$${args[4]}`, shown(entries.slice(0, Number(args[2])))]];
  },
  XACK(space, [, key, name, id]) {
    const found = space.get(key, 'stream')?.groups[name];
    if (found?.pending[id] === undefined) return 0;
    delete found.pending[id];
    return 1;
  },
  XCLAIM(space, [, key, name, consumer, , id, ...options]) {
    const [stream, found] = groupOf(space, key, name);
    if (found.pending[id] === undefined) return [];
    found.pending[id] = consumer;
    return options.includes('JUSTID') ? [`$${id}`] : shown(stream.entries.filter(([each]) => each === id));
  },
};
