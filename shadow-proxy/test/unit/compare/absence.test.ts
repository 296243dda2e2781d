/** Keys that one side has no more: which replies need evidence, and what the evidence afterwards proves. */
// cspell:ignore gnop nosort
import { lifeFromPttl } from '../../../src/resp/key-life.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  compareReplies,
  judgeAbsence,
  needsEvidence,
  type Evidence,
  type MismatchKind,
  type Verdict,
} from '../../../src/compare/compare.js';
import { array, error, inShort, integer, nil, status, string, strings } from '../../integration/compare/frames.js';
import { view, wordsOf } from '../../integration/compare/raw.js';

const LIMITS = { ttlMs: 50 };
const compare = (command: string, authority: Buffer, mirror: Buffer): Verdict =>
  compareReplies(view(wordsOf(command)), authority, mirror, LIMITS);
const evidenceFor = (command: string, authority: Buffer, mirror: Buffer): string | null =>
  needsEvidence(compare(command, authority, mirror), view(wordsOf(command)), authority, mirror);

test('a read that differs while both sides have the key needs no evidence', () => {
  for (const [command, authority, mirror] of [
    ['GET s', string('a'), string('b')],
    ['STRLEN s', integer(3), integer(4)],
    ['TTL s', integer(-1), integer(100)],
    ['TTL s', integer(500), integer(100)],
    ['HGETALL h', strings('a 1'), strings('a 2')],
    ['HMGET h a b', array(string('1'), nil), array(string('1'), string('2'))],
    ['SMEMBERS st', strings('a'), strings('b')],
    ['LRANGE l 0 -1', strings('a b'), strings('a')],
    ['EXISTS s', integer(1), integer(2)],
    ['TYPE s', status('list'), status('set')],
    ['ZSCORE z a', string('1'), string('2')],
    ['GET s', string('a'), error('WRONGTYPE Operation against a key holding the wrong kind of value')],
    ['MGET s n', array(string('a'), string('b')), array(string('a'), string('c'))],
    ['MGET s n', array(string('a'), nil), array(string('b'), string('c'))],
    ['SINTER st', strings('a'), strings('a b')],
  ] as const) {
    assert.match(inShort(compare(command, authority, mirror)), /^!(value|type|length|error)$/, command);
    assert.equal(evidenceFor(command, authority, mirror), null, command);
  }
});

test('a read whose reply shows the absence of its key needs evidence', () => {
  for (const [command, authority, mirror] of [
    ['GET s', string('a'), nil],
    ['TTL s', integer(100), integer(-2)],
    ['LRANGE l 0 -1', strings('a b'), strings('')],
    ['XINFO STREAM x', strings('length 1'), error('ERR no such key')],
  ] as const) {
    assert.equal(evidenceFor(command, authority, mirror), 'absence', command);
    assert.equal(evidenceFor(command, mirror, authority), 'absence', `${command}, with the sides exchanged`);
  }
});

test('a read of several keys may differ because one of them is missing on one server', () => {
  for (const [command, authority, mirror] of [
    ['MGET s n', array(string('a'), nil), array(nil, string('b'))],
    ['EXISTS s n', integer(2), integer(1)],
    ['TOUCH s n', integer(2), integer(1)],
    ['SUNION a b', strings('a'), strings('a b')],
    ['SDIFF a b', strings('a'), strings('a b')],
    ['PFCOUNT a b', integer(5), integer(3)],
    ['ZUNION 2 a b', strings('a'), strings('a b')],
    ['XREAD STREAMS a b 0 0', array(strings('a')), array(strings('a'), strings('b'))],
    // b has expired at the one, and is no stream (no set) at the other.
    [
      'XREAD STREAMS a b 0 0',
      array(strings('a')),
      error('WRONGTYPE Operation against a key holding the wrong kind of value'),
    ],
    ['SUNION a b', error('WRONGTYPE Operation against a key holding the wrong kind of value'), strings('a')],
    ['SUNION a b', strings('a'), error('WRONGTYPE Operation against a key holding the wrong kind of value')],
  ] as const) {
    assert.equal(evidenceFor(command, authority, mirror), 'absence', command);
  }
});

test('any reply to a write may differ because its key was missing on one server', () => {
  for (const [command, authority, mirror] of [
    ['INCR n', integer(43), integer(2)],
    ['SADD st a b', integer(1), integer(0)],
    ['LPUSH l a', integer(1), error('WRONGTYPE Operation against a key holding the wrong kind of value')],
    ['ZADD z INCR 1 a', string('5'), string('7')],
    ['SINTERSTORE d a b', integer(5), integer(3)],
    ['BITFIELD b INCRBY u8 0 1', array(integer(5)), array(integer(1))],
    ['EVAL "return 1" 1 k', integer(5), integer(1)],
    ['SOMETHING.NEW k', integer(5), integer(1)],
    ['RENAME a b', status('OK'), error('ERR no such key')],
  ] as const) {
    assert.equal(evidenceFor(command, authority, mirror), 'absence', command);
  }
});

test('what no missing key can explain needs no evidence', () => {
  for (const [command, authority, mirror] of [
    ['GET s', string('a'), string('a')],
    ['SMEMBERS s', strings('a b'), strings('b a')],
    ['SORT s BY nosort', strings('a b'), strings('b a')],
    ['SUNION a b', strings('a'), error('OOM command not allowed')],
    ['LCS a b', string('a'), error('ERR unknown command `LCS`, with args beginning with: `a`, `b`, ')],
    ['SET k v NX GET', string('a'), error('ERR syntax error')],
    ['INCR n', integer(5), error("OOM command not allowed when used memory > 'maxmemory'.")],
    ['GET n', nil, error('LOADING Redis is loading the dataset in memory')],
    ['SET n 1', status('OK'), error("READONLY You can't write against a read only replica.")],
    ['INFO', string('a'), nil],
    ['CLIENT GETNAME', string('a'), nil],
    ['DBSIZE', integer(1), nil],
    ['RANDOMKEY', string('a'), nil],
    ['INFO', string('a'), error('ERR no')],
    ['SCRIPT EXISTS a', array(integer(1)), array(integer(0))],
    ['FUNCTION LIST', strings('a'), strings('b')],
    ['SUNION a b', strings('a'), error('ERR no')],
    ['SUNION a b', error('ERR no'), strings('a')],
    ['SET n 1', error("READONLY You can't write against a read only replica."), status('OK')],
    ['KEYS *', strings('a'), strings('')],
    ['PING', status('PONG'), status('GNOP')],
  ] as const) {
    assert.equal(evidenceFor(command, authority, mirror), null, command);
  }
});

const mismatch = (what: MismatchKind): Verdict => ({ kind: 'mismatch', what });
const LOST = mismatch('missing-on-mirror');
const SURPLUS = mismatch('missing-on-authority');
const UNCLEAR = mismatch('value');
const READ = { readOnly: true } as const;
const WRITTEN = { writtenSince: true } as const;
const EVICTING = { authorityEvicted: true, mirrorEvicted: true } as const;

/** Evidence that proves nothing, but for what is given. */
const evidence = (given: Partial<Evidence>): Evidence => ({
  authorityLife: lifeFromPttl(-1),
  mirrorLife: lifeFromPttl(-2),
  authorityEvicted: false,
  mirrorEvicted: false,
  writtenSince: false,
  toleranceMs: 100,
  ...given,
});
const judged = (verdict: Verdict, given: Partial<Evidence>): string => inShort(judgeAbsence(verdict, evidence(given)));

test('an expiry edge needs the key about to expire where it was, or just expired', () => {
  assert.equal(judged(LOST, { authorityLife: lifeFromPttl(0) }), 'expiry-edge');
  assert.equal(judged(LOST, { authorityLife: lifeFromPttl(100) }), 'expiry-edge');
  assert.equal(judged(LOST, { authorityLife: lifeFromPttl(-2) }), 'expiry-edge');
  assert.equal(judged(LOST, { authorityLife: lifeFromPttl(-2), elapsedMs: 100 }), 'expiry-edge');
  assert.equal(judged(LOST, { authorityLife: lifeFromPttl(60), elapsedMs: 40 }), 'expiry-edge');

  assert.equal(judged(LOST, { authorityLife: lifeFromPttl(101) }), '!missing-on-mirror');
  assert.equal(judged(LOST, { authorityLife: lifeFromPttl(101), elapsedMs: 300 }), '!missing-on-mirror');
  assert.equal(judged(LOST, { authorityLife: lifeFromPttl(-1) }), '!missing-on-mirror');
  // The side that lacks it proves nothing, however soon the key that it has by now expires.
  assert.equal(judged(LOST, { authorityLife: lifeFromPttl(5000), mirrorLife: lifeFromPttl(5) }), '!missing-on-mirror');
  assert.equal(
    judged(SURPLUS, { authorityLife: lifeFromPttl(-2), mirrorLife: lifeFromPttl(-1) }),
    '!missing-on-authority',
  );
  assert.equal(judged(SURPLUS, { authorityLife: lifeFromPttl(-2), mirrorLife: lifeFromPttl(40) }), 'expiry-edge');
});

test('what is left of a time to live proves nothing where the answer to the question took long', () => {
  // The server was asked at any moment of these 41 ms: 60 to 101 ms were left when the replies differed.
  assert.equal(judged(LOST, { authorityLife: lifeFromPttl(60), elapsedMs: 41 }), '?asked-too-late');
  assert.equal(judged(LOST, { authorityLife: lifeFromPttl(0), elapsedMs: 101, readOnly: true }), '?asked-too-late');
  const late = { authorityLife: lifeFromPttl(-2), mirrorLife: lifeFromPttl(5), elapsedMs: 130 };
  assert.equal(judged(SURPLUS, late), '?asked-too-late');
});

test('a key that is missing much later, or on a side that evicts, is no proof of an expiry', () => {
  assert.equal(judged(LOST, { authorityLife: lifeFromPttl(-2), elapsedMs: 101 }), '?asked-too-late');
  assert.equal(judged(LOST, { authorityLife: lifeFromPttl(-2), authorityEvicted: true }), '?evicted-since');
});

test('an eviction allows a loss on the side that evicts, and only there', () => {
  assert.equal(judged(LOST, { mirrorEvicted: true }), 'evicted');
  assert.equal(judged(LOST, { mirrorEvicted: true, authorityLife: lifeFromPttl(90_000) }), 'evicted');
  assert.equal(judged(LOST, { mirrorEvicted: true, writtenSince: true, mirrorLife: lifeFromPttl(-1) }), 'evicted');
  assert.equal(judged(LOST, { authorityEvicted: true }), '!missing-on-mirror');
  assert.equal(judged(SURPLUS, { mirrorLife: lifeFromPttl(-1), mirrorEvicted: true }), '!missing-on-authority');
  assert.equal(judged(SURPLUS, { mirrorLife: lifeFromPttl(-1), authorityEvicted: true }), 'evicted');
});

test('a key written since proves no expiry', () => {
  assert.equal(judged(LOST, { writtenSince: true }), '?written-since');
  assert.equal(judged(LOST, { writtenSince: true, authorityLife: lifeFromPttl(5) }), '?written-since');
  assert.equal(judged(LOST, { writtenSince: true, authorityLife: lifeFromPttl(-2) }), '?written-since');
  assert.equal(judged(LOST, { writtenSince: true, authorityLife: lifeFromPttl(-1) }), '?written-since');
});

test('a side that cannot be asked leaves it open', () => {
  assert.equal(judged(LOST, { authorityLife: null }), '?no-evidence');
  assert.equal(judged(LOST, { mirrorLife: null }), '!missing-on-mirror');
  assert.equal(judged(LOST, { authorityLife: null, mirrorEvicted: true }), 'evicted');
});

test('where only reads came, a key that is there was not missing: its field or member was', () => {
  assert.equal(
    judged(LOST, { readOnly: true, mirrorLife: lifeFromPttl(-1), authorityLife: lifeFromPttl(5) }),
    '!missing-on-mirror',
  );
  assert.equal(
    judged(LOST, { readOnly: true, mirrorLife: lifeFromPttl(-1), mirrorEvicted: true }),
    '!missing-on-mirror',
  );
  assert.equal(
    judged(LOST, { readOnly: true, mirrorLife: lifeFromPttl(5000), authorityLife: null }),
    '!missing-on-mirror',
  );
  assert.equal(
    judged(LOST, { readOnly: true, mirrorLife: lifeFromPttl(-2), authorityLife: lifeFromPttl(5) }),
    'expiry-edge',
  );
  // A write may have created the key again, and may have removed it: then its absence afterwards proves nothing.
  assert.equal(judged(LOST, { readOnly: false, authorityLife: lifeFromPttl(5) }), 'expiry-edge');
  assert.equal(judged(LOST, { readOnly: false, authorityLife: lifeFromPttl(-2) }), '?asked-too-late');
  assert.equal(judged(LOST, { mirrorLife: lifeFromPttl(-1), authorityLife: lifeFromPttl(5) }), 'expiry-edge');
});

test('a reply that does not show which side lacked the key is allowed by an expiry edge on either side, or by evictions on both', () => {
  assert.equal(judged(UNCLEAR, { authorityLife: lifeFromPttl(20), mirrorLife: lifeFromPttl(-1) }), 'expiry-edge');
  assert.equal(judged(UNCLEAR, { authorityLife: lifeFromPttl(-1), mirrorLife: lifeFromPttl(20) }), 'expiry-edge');
  assert.equal(judged(UNCLEAR, { authorityLife: lifeFromPttl(-1), mirrorLife: lifeFromPttl(-1) }), '!value');
  assert.equal(
    judged(UNCLEAR, { authorityLife: lifeFromPttl(-1), mirrorLife: lifeFromPttl(-1), mirrorEvicted: true }),
    '!value',
  );
  assert.equal(
    judged(UNCLEAR, {
      authorityLife: lifeFromPttl(-1),
      mirrorLife: lifeFromPttl(-1),
      mirrorEvicted: true,
      authorityEvicted: true,
    }),
    'evicted',
  );
});

test('only a mismatch is judged again', () => {
  for (const verdict of [
    { kind: 'match' },
    { kind: 'allowed', rule: 'random' },
    { kind: 'inconclusive', reason: 'x' },
  ] as const) {
    assert.equal(judgeAbsence(verdict, evidence({ authorityLife: lifeFromPttl(-2) })), verdict);
  }
});

test('the evidence of both sides decides: every combination', () => {
  const rows: readonly (readonly [name: string, verdict: Verdict, given: Partial<Evidence>, expected: string])[] = [
    ['the authority keeps the key: a loss', LOST, {}, '!missing-on-mirror'],
    [
      'the mirror keeps the key: a surplus',
      SURPLUS,
      { authorityLife: lifeFromPttl(-2), mirrorLife: lifeFromPttl(-1) },
      '!missing-on-authority',
    ],
    [
      'expired at the authority first',
      SURPLUS,
      { authorityLife: lifeFromPttl(-2), mirrorLife: lifeFromPttl(100) },
      'expiry-edge',
    ],
    [
      'expired at the authority much too early',
      SURPLUS,
      { authorityLife: lifeFromPttl(-2), mirrorLife: lifeFromPttl(101) },
      '!missing-on-authority',
    ],
    [
      'gone from the mirror as well by now',
      SURPLUS,
      { authorityLife: lifeFromPttl(-2), mirrorLife: lifeFromPttl(-2) },
      'expiry-edge',
    ],
    [
      'gone from the mirror, asked too late',
      SURPLUS,
      { authorityLife: lifeFromPttl(-2), elapsedMs: 101 },
      '?asked-too-late',
    ],
    [
      'gone from the mirror, which evicts',
      SURPLUS,
      { authorityLife: lifeFromPttl(-2), mirrorEvicted: true },
      '?evicted-since',
    ],
    ['gone by a write of its own', SURPLUS, { authorityLife: lifeFromPttl(-2), readOnly: false }, '?asked-too-late'],
    ['the mirror could not be asked', SURPLUS, { authorityLife: lifeFromPttl(-2), mirrorLife: null }, '?no-evidence'],
    [
      'the authority could not be asked',
      SURPLUS,
      { authorityLife: null, mirrorLife: lifeFromPttl(-1) },
      '!missing-on-authority',
    ],
    [
      'the authority could not be asked after a read',
      SURPLUS,
      { ...READ, authorityLife: null, mirrorLife: lifeFromPttl(5) },
      'expiry-edge',
    ],
    ['neither could be asked', UNCLEAR, { authorityLife: null, mirrorLife: null }, '?no-evidence'],
    [
      'a read: the mirror has the key after all',
      LOST,
      { ...READ, mirrorLife: lifeFromPttl(5000), authorityLife: lifeFromPttl(-2) },
      '!missing-on-mirror',
    ],
    [
      'a read, then a write: the mirror may have lacked it',
      LOST,
      { ...READ, ...WRITTEN, mirrorLife: lifeFromPttl(9), mirrorEvicted: true },
      'evicted',
    ],
    ['a read, then a write: no eviction', LOST, { ...READ, ...WRITTEN, mirrorLife: lifeFromPttl(9) }, '?written-since'],
    [
      'a read: both have the key, and one is about to lose it',
      UNCLEAR,
      { ...READ, authorityLife: lifeFromPttl(5), mirrorLife: lifeFromPttl(-1) },
      '!value',
    ],
    [
      'a read: the one about to expire is the one that lacked it',
      UNCLEAR,
      { ...READ, authorityLife: lifeFromPttl(-1), mirrorLife: lifeFromPttl(5) },
      '!value',
    ],
    [
      'a read: the mirror lacks it, the authority is about to',
      UNCLEAR,
      { ...READ, authorityLife: lifeFromPttl(5) },
      'expiry-edge',
    ],
    [
      'a read: the authority lacks it, the mirror is about to',
      UNCLEAR,
      { ...READ, authorityLife: lifeFromPttl(-2), mirrorLife: lifeFromPttl(5) },
      'expiry-edge',
    ],
    [
      'a read: both lack it by now, asked too late',
      UNCLEAR,
      { ...READ, authorityLife: lifeFromPttl(-2), elapsedMs: 101 },
      '?asked-too-late',
    ],
    [
      'a read: both lack it, the mirror evicts',
      UNCLEAR,
      { ...READ, authorityLife: lifeFromPttl(-2), mirrorEvicted: true, elapsedMs: 101 },
      '?evicted-since',
    ],
    [
      'both evict, but a read found the key on both',
      UNCLEAR,
      { ...READ, ...EVICTING, authorityLife: lifeFromPttl(-1), mirrorLife: lifeFromPttl(-1) },
      '!value',
    ],
    ['evictions on both sides of a surplus', SURPLUS, { ...EVICTING, mirrorLife: lifeFromPttl(-1) }, 'evicted'],
    [
      'without a tolerance, a key that expires now',
      LOST,
      { authorityLife: lifeFromPttl(0), toleranceMs: 0 },
      'expiry-edge',
    ],
    [
      'without a tolerance, a key with a millisecond left',
      LOST,
      { authorityLife: lifeFromPttl(1), toleranceMs: 0 },
      '!missing-on-mirror',
    ],
  ];
  for (const [name, verdict, given, expected] of rows) assert.equal(judged(verdict, given), expected, name);
});
