/** Rows of commands for databases, scripts, messages and servers. */
import { effect, one, word, type EffectOf } from '../effect.js';
import type { Rows } from '../row.js';

/** Each server has its own subscribers, so their number may differ. */
const message = effect((args) => one(args, null), 'as sent; the number of receivers is not compared');

/** CONFIG SET: each server has its own configuration; but clients choose which events they get. */
const configSet: EffectOf = (args) => {
  for (let i = args.length - 2; i >= 2; i -= 2)
    if (word(args[i]) === KEYSPACE_EVENTS) return one(['CONFIG', 'SET', args[i], args[i + 1]], null);
  return null;
};

const KEYSPACE_EVENTS = 'NOTIFY-KEYSPACE-EVENTS';

export const SERVER: Rows = {
  'config|set': {
    effect: effect(
      configSet,
      '`CONFIG SET notify-keyspace-events`, if among the parameters, whatever the mirror replies; otherwise nothing. Refused with any parameter that is not about events, the slow log, latency monitoring or encodings',
    ),
  },
  dbsize: { asksForAllKeys: true },
  eval: { counts: 'script' },
  evalsha: { counts: 'script' },
  fcall: { counts: 'script' },
  flushall: { replaces: true, changesAllKeys: true },
  flushdb: { replaces: true, changesAllKeys: true },
  publish: { effect: message },
  select: { leavesDatabase: true },
  spublish: { effect: message },
  swapdb: { changesAllKeys: true, leavesDatabase: true },
  wait: { blocking: { timeout: 'last', unit: 1 } },
  waitaof: { blocking: { timeout: 'last', unit: 1 } },
};
