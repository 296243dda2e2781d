/**
 * Where the keys of a command are, and what it does to each: `r` reads, `w` writes, `rw` both. The same table is held
 * against a real server in integration/command/keys.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { arityHolds, countAt, isWord, MALFORMED, UNKNOWN_KEYS } from '../../../src/command/keys.js';
import { CommandTable } from '../../../src/command/table.js';
import { find, reportedKeys } from '../../support/command-frames.js';

const table = new CommandTable();
const ACCESS = ['', 'r', 'w', 'rw'];

/** `a:r b:w`, with `?` behind where other keys may be touched; `malformed` where the server would refuse it. */
function shown(command: string): string {
  const args = command.split(' ').map((arg) => (arg === "''" ? '' : arg));
  const spec = find(table, args);
  assert.ok(spec, command);
  const { count, keys } = reportedKeys(spec, args);
  if (count === MALFORMED) return 'malformed';
  const list = keys.map(([key, access]) => `${key}:${ACCESS[access]}`).join(' ');
  return count === UNKNOWN_KEYS ? `${list} ?` : list;
}

const CALLS: Readonly<Record<string, string>> = {
  'GET a': 'a:r',
  GET: 'malformed',
  'GET a b': 'malformed',
  'MGET a b c': 'a:r b:r c:r',
  'MSET a 1 b 2': 'a:w b:w',
  'DEL a b': 'a:w b:w',
  'RENAME a b': 'a:rw b:w',
  'BLPOP a b 0': 'a:rw b:rw',
  'BITOP AND d a b': 'd:w a:r b:r',
  'EVAL s 2 a b c': 'a:rw b:rw',
  'EVAL s 0': '',
  'EVAL s 3 a b': 'malformed',
  'EVAL s 2 a b': 'a:rw b:rw',
  'EVAL s -1 a': 'malformed',
  'EVAL s 01 a': 'malformed',
  'EVAL s x a': 'malformed',
  'ZUNIONSTORE d 2 a b WEIGHTS 1 2': 'd:w a:r b:r',
  'ZUNIONSTORE d 0 a': 'malformed',
  'LMPOP 1 a LEFT': 'a:rw',
  // Commands whose options say where keys are.
  'SORT a': 'a:r',
  'SORT a ASC ALPHA': 'a:r',
  'SORT a DESC LIMIT 0 5': 'a:r',
  'SORT a LIMIT 0': 'malformed',
  'SORT a LIMIT': 'malformed',
  'SORT a LIMIT 0 5 STORE b': 'a:r b:w',
  'SORT a STORE b STORE c': 'a:r c:w',
  'SORT a STORE': 'malformed',
  'SORT a NOSUCH': 'malformed',
  'SORT a BY nosort GET x STORE b': 'a:r b:w',
  'SORT a BY w_* STORE b': 'a:r b:w ?',
  'SORT a GET w_* GET x': 'a:r ?',
  'SORT a GET x GET w_*': 'a:r ?',
  'SORT a BY': 'malformed',
  'SORT a GET': 'malformed',
  'SORT a STORE GET': 'a:r GET:w',
  'SORT_RO a BY x': 'a:r',
  'SORT_RO a STORE b': 'malformed',
  'GEORADIUS a 1 1 1 km': 'a:r',
  'GEORADIUS a 1 1 1 km STORE b': 'a:r b:w',
  'GEORADIUS a 1 1 1 km storedist b': 'a:r b:w',
  'GEORADIUS a 1 1 1 km STORE b STOREDIST c': 'a:r c:w',
  'GEORADIUS a 1 1 1 km ASC STORE': 'a:r',
  'GEORADIUS a store b 1 km': 'a:r',
  'GEORADIUS a 1 1 1 km STORE STORE STORE b': 'a:r b:w',
  'GEORADIUSBYMEMBER a m 1 km STORE b': 'a:r b:w',
  'GEORADIUSBYMEMBER a m store km': 'a:r',
  'XREAD STREAMS a b 0 0': 'a:r b:r',
  'XREAD COUNT 1 BLOCK 0 STREAMS a $': 'a:r',
  'XREAD BLOCK streams STREAMS a $': 'a:r',
  'XREAD STREAMS a b 0': 'malformed',
  'XREAD COUNT 1 STREAMS': 'malformed',
  'XREAD COUNT 1 BLOCK 5': 'malformed',
  'XREAD NOSUCH STREAMS a 0': 'malformed',
  'XREAD GROUP g c STREAMS a 0': 'malformed',
  'XREADGROUP GROUP g c STREAMS a >': 'a:rw',
  'XREADGROUP GROUP streams c COUNT 1 NOACK STREAMS a b > >': 'a:rw b:rw',
  'XREADGROUP GROUP g c CLAIM 9 BLOCK 0 STREAMS a >': 'a:rw',
  'XREADGROUP GROUP g c MAXCOUNT 2 MAXSIZE 9 STREAMS a >': 'a:rw',
  'XREAD CLAIM 9 STREAMS a 0': 'malformed',
  'XREADGROUP COUNT 1 NOACK STREAMS a >': 'malformed',
  'MIGRATE h 1 a 0 10': 'a:rw',
  "MIGRATE h 1 '' 0 10 KEYS a b": 'a:rw b:rw',
  "MIGRATE h 1 '' 0 10 COPY AUTH keys KEYS a": 'a:rw',
  "MIGRATE h 1 '' 0 10 AUTH2 keys keys KEYS a": 'a:rw',
  "MIGRATE h 1 '' 0 10": ':rw',
  'MIGRATE h 1 a 0 10 KEYS b': 'a:rw',
  'SET a 1': 'a:w',
  'SET a 1 IFNE 2': 'a:rw',
  'SET a 1 IFDEQ 2': 'a:rw',
  'SET a 1 IFDNE 2': 'a:rw',
  'SET a 1 EX 5': 'a:w',
  'SET a 1 GET': 'a:rw',
  'SET a 1 PX 5 NX': 'a:rw',
  'SET a 1 xx': 'a:rw',
  'SET a 1 KeepTTL': 'a:rw',
  'SET a get': 'a:w',
  'BITFIELD a': 'a:r',
  'BITFIELD a GET u8 0': 'a:r',
  'BITFIELD a GET u8 0 OVERFLOW SAT GET u8 8': 'a:r',
  'BITFIELD a GET u8 0 SET u8 0 1': 'a:rw',
  'BITFIELD a OVERFLOW WRAP INCRBY u8 0 1': 'a:rw',
  'BITFIELD a GET u8': 'malformed',
  'BITFIELD a OVERFLOW': 'malformed',
};

for (const [command, keys] of Object.entries(CALLS)) {
  test(command, () => assert.equal(shown(command), keys));
}

test('a count is written as Redis takes it: digits, no zero in front, nine at most', () => {
  const count = (text: string): number => countAt(Buffer.from(`1${text}1`), 1, 1 + text.length);
  assert.deepEqual(
    ['0', '7', '10', '90', '123456789', '1234567890', '', '01', '00', '-1', '+1', '1 ', 'x', '1:', '1/'].map(count),
    [0, 7, 10, 90, 123456789, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1],
  );
});

test('a word is recognized in any case, and by all of its letters', () => {
  const is = (text: string, word = 'get'): boolean => isWord(Buffer.from(`x${text}x`), 1, 1 + text.length, word);
  assert.deepEqual(
    ['get', 'GET', 'gEt', 'ge', 'gets', 'got', 'gey', ''].map((text) => is(text)),
    [true, true, true, false, false, false, false, false],
  );
  assert.deepEqual([is('AZ', 'az'), is('@[', '`{'), is('[', '{'), is('a{', 'a{')], [true, false, false, true]);
});

test('the number of arguments is exact, or at least', () => {
  assert.deepEqual(
    [1, 2, 3].map((argc) => arityHolds(2, argc)),
    [false, true, false],
  );
  assert.deepEqual(
    [1, 2, 3].map((argc) => arityHolds(-2, argc)),
    [false, true, true],
  );
});
