/**
 * The scripts that the models know, with the same effect in each server.
 *
 * Needs real servers: Lua, beside the functions of the models that do the same.
 */
import { createHash } from 'node:crypto';
import { KNOWN_SCRIPTS } from '../../server/scripts.js';
import { duels, type Words } from './duel.js';
import type { Random } from './random.js';

const TEXTS = Object.keys(KNOWN_SCRIPTS);
const KEYS = ['a', 'b', 'c'];
const digestOf = (text: string): string => createHash('sha1').update(text).digest('hex');

function command(random: Random): Words {
  const key = (): string => random.pick(KEYS);
  const rest = (): string[] => ['2', key(), key(), random.pick(['100000', 'x', '500000'])];
  const text = random.pick(TEXTS);
  return random.pick<() => Words>([
    () => ['EVAL', text, ...rest()],
    () => ['EVAL', text, ...rest()],
    () => ['EVALSHA', digestOf(text), ...rest()],
    () => ['EVALSHA', digestOf(text).toUpperCase(), ...rest()],
    () => ['EVAL', text, random.pick(['9', '-1', 'x']), 'a'],
    () => ['SCRIPT', 'LOAD', text],
    () => ['SCRIPT', 'EXISTS', digestOf(text), digestOf(random.pick(TEXTS)), 'x'],
    () => ['SCRIPT', 'FLUSH', ...random.pick([[], ['ASYNC'], ['ZZ']])],
    () => ['SET', key(), random.pick(['1', 'x'])],
    () => ['RPUSH', key(), 'e'],
    () => ['DEL', key(), key()],
    () => ['ACL', 'SETUSER', 'limited', 'on', '>secret', '~a', '~b', '+@all', '-rpush', '-incrby', '+@connection'],
    () => ['AUTH', 'limited', 'secret'],
    () => ['AUTH', 'default', 'any'],
    () => ['AUTH', 'default', 'any'],
    () => ['MULTI'],
    () => ['EXEC'],
    () => ['EXEC'],
    () => ['HELLO', random.pick(['2', '3'])],
  ])();
}

duels('answers scripts as the server does', 41, 3000, command);
