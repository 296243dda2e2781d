/** Transactions judged command by command, and effects that the mirror refuses. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  compareEachOfExec,
  compareExec,
  compareReplies,
  judgeRefusal,
  type CommandView,
} from '../../../src/compare/compare.js';
import {
  array,
  error,
  inShort,
  integer,
  map,
  nil,
  nilArray,
  set,
  status,
  string,
  strings,
} from '../../integration/compare/frames.js';
import { view, wordsOf } from '../../integration/compare/raw.js';

const LIMITS = { ttlMs: 100 };
const commands = (lines: string): CommandView[] => lines.split('; ').map((line) => view(wordsOf(line)));
/** Each finding as `index verdict authority mirror`, `null` for the replies as a whole. */
const inLine = ({ index, verdict, authority, mirror }: ReturnType<typeof compareExec>): string =>
  JSON.stringify([index, inShort(verdict), String(authority), String(mirror)]);

type Row = readonly [
  name: string,
  commands: string,
  authority: Buffer,
  mirror: Buffer,
  /** Place, verdict and replies of each finding, the worst one marked. */
  findings: readonly (readonly [
    index: number | null,
    verdict: string,
    authority: Buffer,
    mirror: Buffer,
    worst?: true,
  ])[],
];

const [A, B, C] = ['a', 'b', 'c'].map(string);
const [OK, ONE, TWO] = [status('OK'), integer(1), integer(2)];
const UNSORTED = [strings('a b'), strings('b a')] as const;
const ABORTED = error('EXECABORT Transaction discarded because of previous errors.');

const ROWS: readonly Row[] = [
  ['equal replies', 'SET k v; GET k', array(OK, A), array(OK, A), []],
  ['one command differs', 'SET k v; GET k', array(OK, A), array(OK, B), [[1, '!value', A, B, true]]],
  ['the first differs', 'GET k; SET k v', array(A, OK), array(nil, OK), [[0, '!missing-on-mirror', A, nil, true]]],
  [
    'each by its own rules',
    'SMEMBERS s; LRANGE l 0 1',
    array(...UNSORTED),
    array(UNSORTED[1], UNSORTED[1]),
    [[0, 'unordered', ...UNSORTED, true]],
  ],
  [
    'the worst comes last',
    'SMEMBERS s; DBSIZE; GET k',
    array(UNSORTED[0], ONE, A),
    array(UNSORTED[1], TWO, B),
    [
      [0, 'unordered', ...UNSORTED],
      [1, '?dbsize-counts-expired', ONE, TWO],
      [2, '!value', A, B, true],
    ],
  ],
  [
    'the worst comes first',
    'GET k; SMEMBERS s',
    array(A, UNSORTED[0]),
    array(B, UNSORTED[1]),
    [
      [0, '!value', A, B, true],
      [1, 'unordered', ...UNSORTED],
    ],
  ],
  [
    'of two that are as bad, the first',
    'GET k; GET l',
    array(A, B),
    array(B, C),
    [
      [0, '!value', A, B, true],
      [1, '!value', B, C],
    ],
  ],
  ['a reply without its command', 'GET k', array(A, B), array(A, C), [[1, '!value', B, C, true]]],
  [
    'a nested reply',
    'LRANGE l 0 -1; GET k',
    array(strings('a b'), A),
    array(strings('a c'), A),
    [[0, '!value', strings('a b'), strings('a c'), true]],
  ],
  ['an error within', 'INCR n', array(ONE), array(error('ERR no')), [[0, '!error', ONE, error('ERR no'), true]]],
  ['fewer replies', 'GET k; GET l', array(A, B), array(A), [[null, '!length', array(A, B), array(A), true]]],
  ['no replies', 'GET k', array(A), array(), [[null, '!length', array(A), array(), true]]],
  ['aborted at the mirror', 'GET k', array(A), nilArray, [[null, '!type', array(A), nilArray, true]]],
  ['aborted at the authority', 'GET k', nilArray, array(A), [[null, '!type', nilArray, array(A), true]]],
  ['aborted at the authority, empty at the mirror', '', nilArray, array(), [[null, '!type', nilArray, array(), true]]],
  ['empty at the authority, aborted at the mirror', '', array(), nilArray, [[null, '!type', array(), nilArray, true]]],
  ['refused at the mirror', 'GET k', array(A), ABORTED, [[null, '?transaction-refused', array(A), ABORTED, true]]],
  ['refused at the authority', 'GET k', ABORTED, array(A), [[null, '!error', ABORTED, array(A), true]]],
  ['another kind of aggregate', 'GET k', array(A), set(A), [[null, '!type', array(A), set(A), true]]],
  ['maps', 'GET k', map(A, B), map(A, C), [[null, '!value', map(A, B), map(A, C), true]]],
  ['integers', 'GET k', ONE, TWO, [[null, '!value', ONE, TWO, true]]],
];

test('a transaction has a finding for each command whose replies differ, and the worst one stands for it', () => {
  for (const [name, lines, authority, mirror, findings] of ROWS) {
    const of = commands(lines);
    const expected = findings.map(([index, short, a, m]) => JSON.stringify([index, short, String(a), String(m)]));
    assert.deepEqual(compareEachOfExec(of, authority, mirror, LIMITS).map(inLine), expected, name);
    const worst = findings.findIndex((each) => each[4]);
    const whole = JSON.stringify([null, 'match', String(authority), String(mirror)]);
    assert.equal(inLine(compareExec(of, authority, mirror, LIMITS)), expected[worst] ?? whole, name);
    const exec = { name: 'exec', args: [Buffer.from('EXEC')], inner: of };
    assert.equal(inShort(compareReplies(exec, authority, mirror, LIMITS)), findings[worst]?.[1] ?? 'match', name);
  }
});

test('without its commands, a transaction is compared as a whole', () => {
  assert.equal(
    inShort(compareReplies(view(['exec']), array(...UNSORTED), array(UNSORTED[1], UNSORTED[1]), LIMITS)),
    '!value',
  );
});

test('the tolerances hold within a transaction', () => {
  const [command] = commands('PTTL k');
  const judge = (ttlMs: number): string =>
    inShort(compareExec([command], array(integer(500)), array(integer(450)), { ttlMs }).verdict);
  assert.deepEqual([judge(50), judge(49)], ['ttl-tolerance', '!value']);
});

test('an effect that the mirror refuses is a mismatch, unless the mirror cannot write now', () => {
  for (const [command, reply, verdict] of [
    [
      'set',
      error('WRONGTYPE Operation against a key holding the wrong kind of value'),
      { kind: 'mismatch', what: 'error' },
    ],
    [
      'set',
      error("OOM command not allowed when used memory > 'maxmemory'."),
      { kind: 'inconclusive', reason: 'mirror-full' },
    ],
    [
      'set',
      error("READONLY You can't write against a read only replica."),
      { kind: 'inconclusive', reason: 'mirror-read-only' },
    ],
    // Queued in a transaction, a read is refused, too.
    [
      'lrange',
      error("OOM command not allowed when used memory > 'maxmemory'."),
      { kind: 'inconclusive', reason: 'mirror-full' },
    ],
    ['set', error('BUSY KeyDB is busy running a script.'), { kind: 'inconclusive', reason: 'mirror-busy' }],
    ['set', error('MISCONF KeyDB is configured'), { kind: 'inconclusive', reason: 'mirror-cannot-save' }],
    ['set', error('NOREPLICAS Not enough good replicas'), { kind: 'inconclusive', reason: 'mirror-lacks-replicas' }],
    ['set', error('BUSYKEY Target key name already exists.'), { kind: 'mismatch', what: 'error' }],
    ['set', error('ERR Error running script: -READONLY You can'), { kind: 'mismatch', what: 'error' }],
    [
      'eval',
      error('ERR Error running script: -READONLY You can'),
      { kind: 'inconclusive', reason: 'mirror-read-only' },
    ],
  ] as const) {
    assert.deepEqual(judgeRefusal({ name: command, args: [] }, reply), verdict, String(reply));
  }
});
