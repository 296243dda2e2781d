/** What Redis's own suite prints is read: tests that passed, failed and were left out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTcl } from '../suites/tcl.js';

const HEAD = [
  'Cleanup: may take some time... OK',
  'Starting test server at port 21079',
  '[ready]: 9153',
  'Testing unit/one',
];
const output = (...lines: string[]): string => [...HEAD, ...lines].join('\n');
const DONE = '[1/1 done]: unit/one (1 seconds)';

test('passed, failed and skipped tests are distinguished', () => {
  const { tests, aborts, cutShort } = parseTcl(
    output(
      '[ok]: SET and GET (a name in brackets) (12 ms)',
      '[err]: HSET/HLEN - Small hash in tests/unit/type/hash.tcl',
      "Expected '8' to equal or match '7'",
      '[ignore]: MIGRATE is caching connections: Not supported on external server',
      '[ignore]: large memory flag not provided',
      '[ignore]: EVAL: with a colon: Tag: needs:debug denied',
      '[skip]: left out by its name',
      DONE,
    ),
  );
  assert.deepEqual(tests, [
    { name: 'SET and GET (a name in brackets)', status: 'ok' },
    { name: 'HSET/HLEN - Small hash', status: 'failed', detail: "Expected '8' to equal or match '7'" },
    { name: 'MIGRATE is caching connections', status: 'skipped', detail: 'Not supported on external server' },
    { name: '(a block) large memory flag not provided', status: 'skipped', detail: 'large memory flag not provided' },
    { name: 'EVAL: with a colon', status: 'skipped', detail: 'Tag: needs:debug denied' },
    { name: 'left out by its name', status: 'skipped' },
  ]);
  assert.deepEqual(aborts, []);
  assert.equal(cutShort, null);
});

test('colours are no part of a name', () => {
  assert.deepEqual(parseTcl(output('[\x1b[0;32mok\x1b[0m]: PING (0 ms)', DONE)).tests, [
    { name: 'PING', status: 'ok' },
  ]);
});

test('an error outside of every test has aborted a part of the unit', () => {
  const parsed = parseTcl(
    output('[err]: -proxy: FUNCTION is refused', 'ERR shadow-proxy: FUNCTION is refused', '    while executing', DONE),
  );
  assert.deepEqual(parsed.tests, []);
  assert.equal(parsed.aborts.length, 1);
  assert.match(parsed.aborts[0], /^ERR shadow-proxy: FUNCTION is refused\n/);
  assert.equal(parsed.cutShort, null);
});

test('an error inside a test is reported from its first line', () => {
  const { tests } = parseTcl(
    output(
      '[err]: A in tests/unit/one.tcl',
      '-proxy: DEBUG is refused',
      'ERR shadow-proxy: DEBUG is refused',
      '    while executing',
      DONE,
    ),
  );
  assert.equal(tests[0].detail?.split('\n')[0], 'ERR shadow-proxy: DEBUG is refused');
});

test('what failed is not counted again in the summary at the end', () => {
  const failed = ['[err]: A in tests/unit/one.tcl', 'why'];
  const { tests } = parseTcl(
    output(...failed, DONE, '', '                   The End', '', '*** [err]: A in tests/unit/one.tcl', 'why'),
  );
  assert.equal(tests.length, 1);
});

test('a unit that stops before its end says why', () => {
  assert.equal(
    parseTcl(output('[ok]: A (1 ms)', '[exception]: Executing test client: I/O error reading reply.', 'I/O error'))
      .cutShort,
    'Executing test client: I/O error reading reply.',
  );
  assert.equal(parseTcl(output('[ok]: A (1 ms)')).cutShort, 'it did not come to its end');
});

test('a test that hangs is named', () => {
  const { hung, cutShort } = parseTcl(
    output(
      '[ok]: A (1 ms)',
      '[TIMEOUT]: clients state report follows.',
      'sock55d => (IN PROGRESS) BLPOP: with one key',
      '',
      '                   The End',
    ),
  );
  assert.deepEqual(hung, ['BLPOP: with one key']);
  assert.equal(cutShort, 'no progress');
});
