/** How a command on a counter with one part per region is rewritten, and which commands are refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isCounterCommand, Refusal, rewrite, REWRITTEN } from '../../../src/regional/counter-commands.js';

/** The refusal of a command, or null. */
function refused(command: string): string | null {
  const [name, ...rest] = command.split(' ');
  const made = rewrite(
    name,
    [name, ...rest].map((arg) => Buffer.from(arg)),
    2,
  );
  return made instanceof Refusal ? made.reply.toString().trim() : null;
}

test('amounts are those that Redis takes, as far as a counter of parts can count', () => {
  for (const amount of ['0', '5', '-5', '9007199254740991', '-9007199254740991'])
    assert.equal(refused(`incrby k ${amount}`), null, amount);
  for (const amount of ['05', '+5', '-0', '00', '1.5', '', '9223372036854775808', 'x'])
    assert.match(refused(`incrby k ${amount}`)!, /^-ERR value is not an integer or out of range$/, amount);
  for (const amount of ['9007199254740992', '-9007199254740992', '9223372036854775807'])
    assert.match(refused(`incrby k ${amount}`)!, /^-ERR increment or decrement would overflow/, amount);
  assert.match(refused('decrby k -9223372036854775808')!, /^-ERR decrement would overflow$/);
  assert.equal(refused('decrby k 9007199254740991'), null);
});

test('a time to live is a number in reach, without options', () => {
  assert.equal(refused('expire k 10'), null);
  assert.match(refused('expire k 10 NX')!, /EXPIRE with NX is refused/);
  assert.match(refused('pexpire k x')!, /not an integer/);
  assert.match(refused('expire k 9007199254740991')!, /invalid expire time in 'expire' command/);
  assert.match(refused('pexpireat k 4503599627370496')!, /invalid expire time in 'pexpireat' command/);
  assert.equal(refused('pexpireat k 4503599627370495'), null);
});

test('the commands that are rewritten are those that the error message lists', () => {
  assert.deepEqual(['incr', 'get', 'ttl', 'set', 'append'].map(isCounterCommand), [true, true, true, false, false]);
  assert.match(REWRITTEN, /^INCR, DECR, .*PTTL$/);
});
