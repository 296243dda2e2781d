/** What single commands do to a string, a counter or a list: written from Redis's documentation, for the checker. */
import type { Reply } from '../clients/replies.js';
import type { Step, Value } from './linearizability.js';

const LIST = 'L';
const SEPARATOR = '\u0000';

const elements = (value: Value): string[] => (value === null ? [] : value.slice(LIST.length).split(SEPARATOR));
const listOf = (of: readonly string[]): Value => (of.length === 0 ? null : LIST + of.join(SEPARATOR));
const bulk = (text: string | null | undefined): Reply => (text === null || text === undefined ? null : `$${text}`);

export function stringSpec(value: Value, args: readonly string[]): Step {
  const [name, , first, second] = args;
  switch (name) {
    case 'GET':
      return { value, reply: bulk(value) };
    case 'SET':
      return set(value, first, args[3]);
    case 'GETSET':
      return { value: first, reply: bulk(value) };
    case 'SETNX':
      return value === null ? { value: first, reply: 1 } : { value, reply: 0 };
    case 'APPEND':
      return { value: (value ?? '') + first, reply: (value ?? '').length + first.length };
    case 'SETRANGE': {
      const [at, old] = [Number(first), value ?? ''];
      const next = old.slice(0, at).padEnd(at, '\u0000') + second + old.slice(at + second.length);
      return { value: next, reply: next.length };
    }
    case 'GETRANGE': {
      const text = value ?? '';
      const end = Number(second) < 0 ? text.length + Number(second) : Number(second);
      return { value, reply: `$${text.slice(Number(first), end + 1)}` };
    }
    case 'EXISTS':
      return { value, reply: value === null ? 0 : 1 };
    case 'STRLEN':
      return { value, reply: (value ?? '').length };
    case 'DEL':
    case 'UNLINK':
      return { value: null, reply: value === null ? 0 : 1 };
    case 'GETDEL':
      return { value: null, reply: bulk(value) };
    case 'INCR':
      return add(value, 1);
    case 'DECR':
      return add(value, -1);
    case 'INCRBY':
      return add(value, Number(first));
    case 'DECRBY':
      return add(value, -Number(first));
    default:
      throw new Error(`spec.ts lacks ${name} of strings`);
  }
}

function set(value: Value, next: string, option: string | undefined): Step {
  if (option === 'GET') return { value: next, reply: bulk(value) };
  if ((option === 'NX' && value !== null) || (option === 'XX' && value === null)) return { value, reply: null };
  return { value: next, reply: '+OK' };
}

function add(value: Value, by: number): Step {
  const sum = Number(value ?? '0') + by;
  return { value: String(sum), reply: sum };
}

export function listSpec(value: Value, args: readonly string[]): Step {
  const [name, , ...rest] = args;
  const list = elements(value);
  const step = (reply: Reply): Step => ({ value: listOf(list), reply });
  switch (name) {
    case 'RPUSH':
      return step(list.push(...rest));
    case 'LPUSH':
      return step(list.unshift(...rest.reverse()));
    case 'LPOP':
      if (rest.length === 0) return step(bulk(list.shift()));
      return value === null ? step(null) : step(list.splice(0, Number(rest[0])).map((each) => `$${each}`));
    case 'RPOP':
      if (rest.length === 0) return step(bulk(list.pop()));
      return value === null
        ? step(null)
        : step(
            list
              .splice(-Number(rest[0]))
              .reverse()
              .map((each) => `$${each}`),
          );
    case 'RPUSHX':
      return step(value === null ? 0 : list.push(...rest));
    case 'LLEN':
      return step(list.length);
    case 'LRANGE':
      return step(list.map((each) => `$${each}`));
    case 'LINDEX':
      return step(bulk(list[Number(rest[0])]));
    case 'LSET': {
      const at = Number(rest[0]);
      if (value === null) return step('-ERR no such key');
      if (at >= list.length) return step('-ERR index out of range');
      list[at] = rest[1];
      return step('+OK');
    }
    case 'LTRIM':
      list.length = Math.min(list.length, Number(rest[1]) + 1);
      return step('+OK');
    case 'LMOVE': {
      const moved = list.shift();
      if (moved !== undefined) list.push(moved);
      return step(bulk(moved));
    }
    default:
      throw new Error(`spec.ts lacks ${name} of lists`);
  }
}
