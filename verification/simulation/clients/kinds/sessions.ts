/** What clients do to their own connection and to others'. Each is a pipeline by itself. */
import type { Command, Draw } from '../draw.js';
import { STRING } from './strings.js';

/** A user that may not use all commands and keys. */
export const LIMITED = { name: 'limited', password: 'secret' } as const;
/** A user that may do everything, on connections of its own. */
export const OTHER = { name: 'other', password: 'secret' } as const;
export const OTHER_RULES = ['on', `>${OTHER.password}`, '~*', '&*', '+@all'];
/** The kit's own user at a source that is fenced. */
export const KIT = { name: 'kit', password: 'of-the-kit' } as const;
export const KIT_RULES = ['on', `>${KIT.password}`, '~*', '&*', '+@all'];
export const LIMITED_RULES = [
  'on',
  `>${LIMITED.password}`,
  '~s*',
  '~l*',
  '~e*',
  '~b*',
  '~j*',
  '~n*',
  '~m*',
  '&*',
  '+@all',
  '-lpush',
  '-getdel',
];

export function session(draw: Draw, other: () => readonly Command[]): readonly Command[] {
  const id = draw.clientId();
  const some = other();
  // Nothing comes behind a command that waits without a limit, until the client's end is seen.
  if (some.at(-1)?.finishes === true) return some;
  switch (draw.random.below(10)) {
    case 0:
    case 1: {
      const selects = draw.random.pick([0, 0, 0, 1, 2, 3]);
      return [{ ...draw.of(['SELECT', String(selects)]), selects }];
    }
    case 2:
      return [draw.of(['AUTH', LIMITED.name, draw.pick(LIMITED.password, 'wrong')]), ...some];
    case 3:
      if (draw.random.chance(0.3)) return [{ ...draw.of(['RESET']), selects: 0 }];
      return [draw.of(['AUTH', 'default', 'any']), ...some];
    case 4:
      return [draw.of(['HELLO', draw.pick('2', '3')]), ...some];
    case 5:
      return [draw.of(['CLIENT', 'ID']), draw.of(['CLIENT', 'SETNAME', draw.value()]), draw.of(['CLIENT', 'GETNAME'])];
    case 6:
      if (id === null) return [draw.of(['CLIENT', 'ID'])];
      return [
        draw.of(
          draw.pick<readonly string[]>(
            ['CLIENT', 'UNBLOCK', id, 'TIMEOUT'],
            ['CLIENT', 'UNBLOCK', id, 'ERROR'],
            ['CLIENT', 'KILL', 'ID', id, 'SKIPME', 'yes'],
            ['CLIENT', 'LIST', 'ID', id],
          ),
        ),
        draw.of(['PING']),
      ];
    case 7: {
      const mute = (command: Command): Command => ({ ...command, silent: true });
      if (draw.random.chance(0.5))
        return [
          ...[draw.of(['CLIENT', 'REPLY', 'SKIP']), draw.form(STRING, draw.key('s'))].map(mute),
          draw.of(['PING']),
        ];
      return [mute(draw.of(['CLIENT', 'REPLY', 'OFF'])), ...some.map(mute), draw.of(['CLIENT', 'REPLY', 'ON'])];
    }
    case 8:
      return [...some, { ...draw.of(['PING']), finishes: true }];
    default:
      return [...some, draw.of(['QUIT'])];
  }
}

/** Rare: commands on whole databases, and between them. */
export function databases(draw: Draw): Command {
  const [string, expiring] = [draw.key('s'), draw.key('e')];
  const key = draw.pick(string, expiring);
  const to = (draw.database + 1) % 2;
  // Followed keys are in the databases 0 and 1.
  if (draw.database >= 2 && draw.random.chance(0.3))
    return draw.of(draw.pick<readonly string[]>(['FLUSHDB'], ['SWAPDB', '2', '3']));
  if (draw.random.chance(0.5)) return draw.of(['MOVE', key, String(to)], key);
  return draw.of(['COPY', key, key, 'DB', String(to), 'REPLACE'], key);
}

/** Logins that fail: so many of one address are answered at once. */
const FREE_LOGINS = 10;

export const logins = (draw: Draw): Command =>
  draw.failedLogins++ < FREE_LOGINS ? draw.of(['AUTH', LIMITED.name, 'wrong']) : draw.of(['PING']);
