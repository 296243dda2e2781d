/** Writes to keys that nothing has written before: only the command itself names them. */
import { DATABASES, type Command, type Draw } from '../draw.js';
import { declared } from './scripts.js';

/** So many writes later the key is deleted. */
const KEPT = 40;

export function fresh(draw: Draw): Command | readonly Command[] {
  const key = draw.fresh();
  const [list, set, sorted, string] = [draw.key('l'), draw.key('t'), draw.key('z'), draw.key('s')];
  const value = draw.value();
  const otherDatabase = String((draw.database + 1 + draw.random.below(DATABASES - 1)) % DATABASES);
  switch (draw.random.below(20)) {
    case 0:
      return draw.of(['SET', key, value], key);
    case 1:
      return draw.of(['APPEND', key, value], key);
    case 2:
      return draw.of(['HSET', key, 'f', value], key);
    case 3:
      return draw.of(['XADD', key, '*', 'f', value], key);
    case 4:
      return draw.of(['XGROUP', 'CREATE', key, 'g', '$', 'MKSTREAM'], key);
    case 5: {
      const second = draw.fresh();
      return draw.of([draw.pick('MSET', 'MSETNX'), key, value, second, value], key, second);
    }
    case 6:
      return draw.of(['COPY', string, key], string, key);
    case 7:
      return draw.of(['SUNIONSTORE', key, set, set], key, set);
    case 8:
      return draw.of(['ZUNIONSTORE', key, '1', sorted], key, sorted);
    case 9:
      return draw.of(['LMOVE', list, key, 'LEFT', 'RIGHT'], list, key);
    case 10:
      return draw.of(['BLMOVE', list, key, 'LEFT', 'RIGHT', draw.seconds()], list, key);
    case 11:
      return draw.of(['BRPOPLPUSH', list, key, draw.seconds()], list, key);
    case 12:
      return draw.of(['RENAMENX', string, key], string, key);
    case 13:
      return draw.of(['ZRANGESTORE', key, sorted, '0', '-1'], key, sorted);
    case 14:
      return declared(draw, string, key);
    case 15: {
      const inside = [draw.of(['INCR', key], key), draw.of(['COPY', string, `${key}:copy`], string, `${key}:copy`)];
      return [
        draw.of(['MULTI']),
        ...inside.map((each) => ({ ...each, inTransaction: true })),
        { args: ['EXEC'], keys: [], queued: inside.map(({ args }) => args) },
      ];
    }
    case 16:
      return draw.of(['COPY', string, key, 'DB', otherDatabase], string, key);
    case 17:
      return [draw.of(['SET', key, value], key), draw.of(['MOVE', key, otherDatabase], key)];
    default: {
      const old = draw.fresh(KEPT);
      return draw.of(['UNLINK', old, `${old}:copy`], old, `${old}:copy`);
    }
  }
}
