/** Lists. A pop that blocks takes effect at one moment, as one that does not: at its timeout it finds nothing. */
import type { Reply } from '../../clients/replies.js';
import { bulk, bulks, Refused, type Run, type Space } from './space.js';

const listOf = (space: Space, key: string): string[] => space.get(key, 'list') ?? [];

function put(space: Space, key: string, list: string[], reply: Reply): Reply {
  space.put(key, 'list', list);
  return reply;
}

const push =
  (end: 'LEFT' | 'RIGHT', exists = false): Run =>
  (space, [, key, ...values]) => {
    const list = listOf(space, key);
    if (exists && list.length === 0) return 0;
    if (end === 'LEFT') list.unshift(...values.reverse());
    else list.push(...values);
    return put(space, key, list, list.length);
  };

const take = (list: string[], end: string): string | undefined => (end === 'LEFT' ? list.shift() : list.pop());

const pop =
  (end: 'LEFT' | 'RIGHT'): Run =>
  (space, [, key, count]) => {
    const list = listOf(space, key);
    if (count === undefined) return put(space, key, list, bulk(take(list, end)));
    if (list.length === 0) return null;
    const taken = Array.from({ length: Math.min(list.length, Number(count)) }, () => take(list, end)!);
    return put(space, key, list, bulks(taken));
  };

function move(space: Space, from: string, to: string, end: string, toEnd: string): Reply {
  const list = listOf(space, from);
  if (list.length === 0) return null;
  listOf(space, to);
  const moved = take(list, end)!;
  space.put(from, 'list', list);
  const other = listOf(space, to);
  if (toEnd === 'LEFT') other.unshift(moved);
  else other.push(moved);
  return put(space, to, other, bulk(moved));
}

/**
 * From the first list that has elements. One that waited may get it from a later one: as a key is filled, the servers
 * serve all that wait for it, and only then those that wait for what a BLMOVE among them has filled (`blocked.c`).
 */
const popFirst =
  (end: 'LEFT' | 'RIGHT'): Run =>
  (space, args) => {
    const filled = args.slice(1, -1).filter((key) => listOf(space, key).length > 0);
    if (filled.length === 0) return null;
    const { observed } = space;
    const seen = Array.isArray(observed) ? (observed as readonly Reply[])[0] : undefined;
    const key = filled.find((each) => `$${each}` === seen) ?? filled[0];
    const list = listOf(space, key);
    return put(space, key, list, bulks([key, take(list, end)!]));
  };

export const LIST_RUNS: Readonly<Record<string, Run>> = {
  RPUSH: push('RIGHT'),
  LPUSH: push('LEFT'),
  RPUSHX: push('RIGHT', true),
  LPOP: pop('LEFT'),
  RPOP: pop('RIGHT'),
  BLPOP: popFirst('LEFT'),
  BRPOP: popFirst('RIGHT'),
  LMOVE: (space, [, from, to, end, toEnd]) => move(space, from, to, end, toEnd),
  BLMOVE: (space, [, from, to, end, toEnd]) => move(space, from, to, end, toEnd),
  RPOPLPUSH: (space, [, from, to]) => move(space, from, to, 'RIGHT', 'LEFT'),
  BRPOPLPUSH: (space, [, from, to]) => move(space, from, to, 'RIGHT', 'LEFT'),
  LLEN: (space, [, key]) => listOf(space, key).length,
  LRANGE: (space, [, key]) => bulks(listOf(space, key)),
  LINDEX: (space, [, key, at]) => bulk(listOf(space, key)[Number(at)]),
  LSET(space, [, key, at, value]) {
    const list = listOf(space, key);
    if (Number(at) >= list.length) throw new Refused('ERR');
    list[Number(at)] = value;
    return put(space, key, list, '+OK');
  },
  LTRIM(space, [, key, , to]) {
    const list = listOf(space, key);
    return put(space, key, list.slice(0, Number(to) + 1), '+OK');
  },
};
