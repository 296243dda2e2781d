/** What each command on a plain counter does to its parts, and the reply for the client. Pure. */
import {
  add,
  CounterError,
  expireAt,
  look,
  remove,
  type CounterState,
  type Step,
} from '../../../counters/src/index.js';
import { unixMs } from '../io/clock.js';
import { wordOf } from '../resp/decode.js';
import { array, bulk, error, integer } from '../resp/encode.js';

/** The result of a step: a value, or why it failed. */
export type Answer = number | boolean | CounterState | CounterError;

/** A command as steps on counters. */
export interface CounterCommand {
  /** The counters of the command, in its order. */
  readonly names: readonly string[];
  readonly step: Step<Answer>;
  /** Whether the command is a read. */
  readonly asks: boolean;
  /** The reply, made from the result for each name. */
  reply(answers: readonly Answer[]): Buffer;
}

type Parse = (args: readonly Buffer[], protocol: 2 | 3) => CounterCommand | Refusal;

/** The error reply of a command that is not run. */
export class Refusal {
  readonly reply: Buffer;
  constructor(message: string) {
    this.reply = error(message);
  }
}

const NOT_INTEGER = new Refusal('ERR value is not an integer or out of range');
const MOST = BigInt(Number.MAX_SAFE_INTEGER);
const [INT64_MIN, INT64_MAX] = [-(2n ** 63n), 2n ** 63n - 1n];

/** Accepts what Redis's string2ll accepts: no plus sign, no leading zeros. */
function int64(arg: Buffer): bigint | null {
  const text = wordOf(arg);
  if (!/^(0|-?[1-9]\d{0,18})$/.test(text)) return null;
  const value = BigInt(text);
  return value >= INT64_MIN && value <= INT64_MAX ? value : null;
}

const nameOf = (arg: Buffer): string => arg.toString('latin1');

const count = (answers: readonly Answer[]): Buffer =>
  integer(answers.reduce((sum: number, each) => sum + Number(each), 0));
const first = ([answer]: readonly Answer[]): Buffer => integer(Number(answer));

/** A step whose expected failure is a result: in a transaction the other steps go on. */
const answering =
  (step: Step<number | boolean>): Step<Answer> =>
  (scene) => {
    try {
      return step(scene);
    } catch (problem) {
      if (!(problem instanceof CounterError)) throw problem;
      return { own: scene.own, reply: problem };
    }
  };

const OVERFLOW = new Refusal(
  `ERR increment or decrement would overflow: shadow-proxy counts from -${MOST} to ${MOST} where counterLayout is per-region`,
);

const change = (
  names: readonly string[],
  step: Step<number | boolean>,
  reply: CounterCommand['reply'],
): CounterCommand => ({
  names,
  step: answering(step),
  asks: false,
  reply: (answers) => (answers.some((each) => each instanceof CounterError) ? OVERFLOW.reply : reply(answers)),
});

const question = (args: readonly Buffer[], reply: (found: readonly CounterState[]) => Buffer): CounterCommand => ({
  names: args.map(nameOf),
  step: (scene) => ({ own: scene.own, reply: look(scene) }),
  asks: true,
  reply: (answers) => reply(answers as readonly CounterState[]),
});

const increment = (key: Buffer, by: bigint): CounterCommand | Refusal =>
  by > MOST || by < -MOST ? OVERFLOW : change([nameOf(key)], add(Number(by)), first);

const incrementBy =
  (sign: 1n | -1n): Parse =>
  ([, key, amount]) => {
    const by = int64(amount);
    if (by === null) return NOT_INTEGER;
    return sign < 0n && by === INT64_MIN ? new Refusal('ERR decrement would overflow') : increment(key, sign * by);
  };

/** @param unit ms for each unit of the argument. @param relative whether it counts from now; else since 1970 */
const expire =
  (name: string, unit: bigint, relative: boolean): Parse =>
  ([, key, amount, option]) => {
    if (option !== undefined)
      return new Refusal(
        `ERR shadow-proxy: ${name.toUpperCase()} with ${wordOf(option).slice(0, 8).toUpperCase()} is refused where counterLayout is per-region: leave the option out`,
      );
    const given = int64(amount);
    if (given === null) return NOT_INTEGER;
    const ms = given * unit;
    if (ms > MOST / 2n || ms < -MOST) return new Refusal(`ERR invalid expire time in '${name}' command`);
    return change([nameOf(key)], (scene) => expireAt(Number(ms) + (relative ? scene.now : 0))(scene), first);
  };

const timeToLive =
  (unit: number): Parse =>
  ([, key]) =>
    question([key], ([{ exists, endsAt }]) =>
      integer(!exists ? -2 : endsAt === null ? -1 : Math.round(Math.max(0, endsAt - unixMs()) / unit)),
    );

const text = ({ exists, value }: CounterState, protocol: 2 | 3): Buffer =>
  bulk(exists ? String(value) : null, protocol);

/** Each key counts once, even if it is named several times. */
const del: Parse = ([, ...keys]) => change([...new Set(keys.map(nameOf))], remove, count);

const COMMANDS = new Map<string, Parse>([
  ['incr', ([, key]) => increment(key, 1n)],
  ['decr', ([, key]) => increment(key, -1n)],
  ['incrby', incrementBy(1n)],
  ['decrby', incrementBy(-1n)],
  ['get', ([, key], protocol) => question([key], ([found]) => text(found, protocol))],
  ['mget', ([, ...keys], protocol) => question(keys, (found) => array(found.map((each) => text(each, protocol))))],
  ['exists', ([, ...keys]) => question(keys, (found) => count(found.map(({ exists }) => exists)))],
  ['del', del],
  ['unlink', del],
  ['expire', expire('expire', 1000n, true)],
  ['pexpire', expire('pexpire', 1n, true)],
  ['expireat', expire('expireat', 1000n, false)],
  ['pexpireat', expire('pexpireat', 1n, false)],
  ['persist', ([, key]) => change([nameOf(key)], expireAt(null), first)],
  ['ttl', timeToLive(1000)],
  ['pttl', timeToLive(1)],
]);

/** For people: the commands that are supported. */
export const REWRITTEN = [...COMMANDS.keys()].map((name) => name.toUpperCase()).join(', ');

export const isCounterCommand = (name: string): boolean => COMMANDS.has(name);

/** @param args the command; the server has checked the number of its arguments */
export const rewrite = (name: string, args: readonly Buffer[], protocol: 2 | 3): CounterCommand | Refusal =>
  COMMANDS.get(name)!(args, protocol);
