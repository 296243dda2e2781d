/** Who may do everything: only a user of whom the server has said so lately. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeReply, type Reply } from '../../../src/resp/decode.js';
import { rightsIn, Privileges } from '../../../src/upstream/privileges.js';

const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`;
const reply = (...items: readonly string[]): Reply =>
  decodeReply(Buffer.from(`*${items.length}\r\n${items.join('')}`)).reply;
const user = (commands: string, keys: string, channels?: string): Reply =>
  reply(
    ...[bulk('flags'), bulk('on'), bulk('commands'), bulk(commands), bulk('keys'), bulk(keys)],
    ...(channels === undefined ? [] : [bulk('channels'), bulk(channels)]),
  );
const ALL = user('+@all', '~*', '&*');
const REFUSED = decodeReply(Buffer.from('-ERR no\r\n')).reply;
const CREDENTIALS = { username: 'app', password: 'x' };

test('everything is every command, every key and every channel', () => {
  assert.equal(rightsIn(ALL).unrestricted, true);
  assert.equal(rightsIn(user('+@all', '~a:* ~*', '&*')).unrestricted, true);
  assert.equal(rightsIn(user('+@all', '~*')).unrestricted, true, 'Redis 6.0 has no channels');
  assert.equal(rightsIn(user('+@all', '*', '*')).unrestricted, true);
  assert.equal(rightsIn(user('+@all -get', '~*', '&*')).unrestricted, false);
  assert.equal(rightsIn(user('+@all', '~a:*', '&*')).unrestricted, false);
  assert.equal(rightsIn(user('+@all', '%R~*', '&*')).unrestricted, false);
  assert.equal(rightsIn(user('+@all', '~*', '&a')).unrestricted, false);
  assert.equal(rightsIn(reply(bulk('commands'), bulk('+@all'))).unrestricted, false, 'no word about keys');
  assert.equal(rightsIn(REFUSED).unrestricted, false);
  assert.equal(rightsIn(decodeReply(Buffer.from('$-1\r\n')).reply).unrestricted, false);
  for (const [keys, allKeys] of [
    ['~*', true],
    ['~a:* ~*', true],
    ['*', true],
    ['~a:*', false],
    ['%R~*', false],
    ['', false],
  ] as const)
    assert.deepEqual(rightsIn(user('+@all -flushall', keys, '')), { unrestricted: false, allKeys }, keys);
});

test('a user is unrestricted once the server has said so, and for three seconds', async (t) => {
  let now = 1_000;
  t.mock.method(performance, 'now', () => now);
  const asked: unknown[] = [];
  const privileges = new Privileges(async (...args) => (asked.push(args), ALL));
  t.after(() => privileges.close());
  assert.equal(privileges.isUnrestricted(CREDENTIALS), false, 'nobody has asked about it');
  await privileges.learn(CREDENTIALS);
  assert.deepEqual(asked, [['ACL', 'GETUSER', 'app']]);
  assert.equal(privileges.isUnrestricted(CREDENTIALS), true);
  assert.equal(privileges.isUnrestricted(undefined), false, 'the default user is another one');
  assert.equal(privileges.learn(CREDENTIALS), null, 'it was asked before');
  now += 2_999;
  assert.equal(privileges.isUnrestricted(CREDENTIALS), true);
  now += 1;
  assert.equal(privileges.isUnrestricted(CREDENTIALS), false);
});

test('a server that refuses, or is lost, grants nothing', async (t) => {
  const refusing = new Privileges(async () => REFUSED);
  const lost = new Privileges(() => Promise.reject(new Error('lost')));
  t.after(() => (refusing.close(), lost.close()));
  await refusing.learn(undefined);
  await lost.learn(undefined);
  assert.deepEqual([refusing.isUnrestricted(undefined), lost.isUnrestricted(undefined)], [false, false]);
});
