/**
 * Connections, users and settings: what one client says of itself, in each server.
 *
 * Needs real servers: replies about connections, users and settings, beside those of the model.
 */
import { duels, type Words } from './duel.js';
import type { Engine } from '../../server/state.js';
import type { Random } from './random.js';

const KEYS = ['a:1', 'a:2', 'b:1'];

function command(random: Random, engine: Engine): Words {
  const key = (): string => random.pick(KEYS);
  const rule = (): string =>
    random.pick([
      'on',
      '>pw',
      'nopass',
      '~a:*',
      '~*',
      '+get',
      '+@all',
      '-set',
      'resetkeys',
      '&*',
      'allcommands',
      '+client|id',
    ]);
  return random.pick<() => Words>([
    () => ['PING'],
    () => ['PING', 'text', ...random.pick([[], ['more']])],
    () => ['ECHO', 'text'],
    () => ['CONFIG', 'SET', 'notify-keyspace-events', random.pick(['KEn', 'KEA', 'Kq', ''])],
    () => ['SELECT', random.pick(['0', '1', '15', '16', 'x', ''])],
    () => [
      'HELLO',
      random.pick(['2', '3', '1', 'x']),
      ...random.pick([[], ['SETNAME', 'me'], ['AUTH', 'default', 'x'], ['ZZ'], ['SETNAME', 'a b']]),
    ],
    () => ['AUTH', ...random.pick([['pw'], ['u1', 'pw'], ['u1', 'wrong'], ['default', 'x'], ['a', 'b', 'c']])],
    () => ['CLIENT', 'SETNAME', random.pick(['me', '', 'a b', 'x'])],
    () => ['CLIENT', 'GETNAME'],
    () =>
      [
        'CLIENT',
        random.pick(['NOSUCH', 'UNBLOCK', 'SETNAME', 'REPLY']),
        ...random.pick([[], []]),
        ...random.pick([[], ['a', 'b', 'c', 'd']]),
      ].slice(0, 6),
    () => ['CLIENT', 'UNBLOCK', random.pick(['999999', 'x']), ...random.pick([[], ['ERROR'], ['ZZ']])],
    () => [
      'CLIENT',
      'KILL',
      ...random.pick([['ID', '999999'], ['127.0.0.1:1'], ['ID', 'x'], ['TYPE', 'zz'], ['ZZ', 'x'], ['SKIPME', 'zz']]),
    ],
    () => ['CLIENT', 'NO-EVICT', random.pick(['on', 'off', 'zz'])],
    () => ['ACL', 'WHOAMI'],
    () => ['ACL', 'USERS'],
    () => [
      'ACL',
      'SETUSER',
      'u1',
      'reset',
      'on',
      '>pw',
      ...random.pick([
        ['~a:*', '+@all'],
        ['~*', '+get', '+auth', '+acl', '+select'],
        ['~*', '+@all', '-set'],
      ]),
    ],
    () => ['ACL', 'SETUSER', 'u2', ...(engine === 'redis' ? [] : []), rule(), 'zz'],
    () => ['GET', key()],
    () => ['SET', key(), 'v'],
    () => ['MGET', key(), key()],
    () => ['COPY', key(), key()],
    () => ['OBJECT', 'ENCODING', key()],
    () => ['COMMAND', 'GETKEYS', 'MSET', 'a', '1', 'b', '2'],
    () => ['CONFIG', 'GET', random.pick(['maxmemory', 'databases', 'lua-time-limit', 'nosuch', 'timeout'])],
    () => ['CONFIG', 'SET', 'nosuch', '1'],
    () => ['RESET'],
    () => ['MULTI'],
    () => ['EXEC'],
    () => ['DISCARD'],
    () => ['WAIT', '0', '0'],
    () => ['MEMORY', 'USAGE', 'nothing'],
    () => ['UNSUBSCRIBE'],
    () => ['ROLE'],
    () => ['SLOWLOG', 'RESET'],
  ])();
}

duels('answers commands of connections as the server does', 51, 2500, command);
