/** SORT of lists, sets and sorted sets, without other keys: BY gives no order, and GET and STORE are left out. */
import { doubleOf, needInteger } from './numbers.js';
import { Options } from './options.js';
import { bulks, EMPTY_ARRAY, Refusal, SYNTAX, WRONG_TYPE } from './reply.js';
import type { SortedSet } from './sorted-set.js';
import type { Run } from './state.js';
import type { Entry } from './values.js';

const sort: Run = ({ database, server }, args) => {
  const options = new Options(args, 2);
  let [alpha, descending, sorts] = [false, false, true];
  let [offset, count] = [0, -1];
  while (options.more) {
    const word = options.word();
    if (word === 'asc' || word === 'desc') descending = word === 'desc';
    else if (word === 'alpha') alpha = true;
    else if (word === 'limit' && options.left >= 2)
      [offset, count] = [needInteger(options.next()), needInteger(options.next())];
    else if (word === 'by' && options.left >= 1) {
      if (options.next().includes('*')) return lacking(server.lacking, 'SORT … BY of other keys');
      sorts = false;
    } else if (word === 'get' || word === 'store') return lacking(server.lacking, `SORT … ${word}`);
    else throw SYNTAX;
  }
  const entry = database.get(args[1]);
  if (entry === undefined) return EMPTY_ARRAY;
  const elements = elementsOf(entry);
  if (sorts && !alpha && elements.some((element) => Number.isNaN(numberOf(element))))
    throw new Refusal("ERR One or more scores can't be converted into double");
  if (sorts) elements.sort((a, b) => (alpha ? 0 : numberOf(a) - numberOf(b)) || (a < b ? -1 : a > b ? 1 : 0));
  if (descending && (sorts || entry.type === 'zset')) elements.reverse();
  const from = Math.max(0, offset);
  return bulks(count < 0 ? elements.slice(from) : elements.slice(from, from + count));
};

const numberOf = (element: string): number => (element === '' ? 0 : doubleOf(element));

function elementsOf({ type, value }: Entry): string[] {
  if (type === 'list') return [...(value as readonly string[])];
  if (type === 'set') return [...(value as ReadonlySet<string>)];
  if (type === 'zset') return (value as SortedSet).ordered().map(({ member }) => member);
  throw WRONG_TYPE;
}

function lacking(list: Set<string>, what: string): never {
  list.add(what);
  throw new Refusal(`ERR the model lacks ${what}`);
}

export const SORT_COMMANDS: Readonly<Record<string, Run>> = { sort };
