/**
 * What is sent to the mirror for each command that has an effect of its own: from its arguments and the authority's
 * reply, the exact frames, and the replies that the mirror must give.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Effect, EffectOf } from '../../../src/command/effect.js';
import { CommandTable, type CommandSpec } from '../../../src/command/table.js';
import { shiftTtl, shortenTtl } from '../../../src/command/ttl.js';
import { decodeReply } from '../../../src/resp/decode.js';
import { encodeCommand } from '../../../src/resp/encode.js';

const table = new CommandTable();

/** A frame as its arguments, and the reply that is expected: `same`, null for any but an error, or its bytes. */
type Sent = readonly [command: string, reply: string | null];
/** A read in the command's place, and the reply that is expected. */
interface Asked {
  readonly asks: string;
  readonly reply: string;
}
type Expected = null | 'verbatim' | 'copy' | readonly Sent[] | Asked;
interface Case {
  readonly asked: string;
  /** The authority's reply. */
  readonly reply: string;
  readonly sent: Expected;
  readonly protocol?: 2 | 3;
  /** The reply to the probe. */
  readonly probe?: string;
  /** Whether the authority, and the mirror, create consumers that find nothing; absent: they do the same. */
  readonly creates?: readonly [authority: boolean, mirror: boolean];
  /** Whether the mirror's streams count their entries; absent: not, as KeyDB's. */
  readonly counts?: boolean;
}

const split = (command: string): Buffer[] => command.split(' ').map((word) => Buffer.from(word));
const decoded = (reply: string) => decodeReply(Buffer.from(reply)).reply;
const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`;
const array = (...items: readonly string[]): string => `*${items.length}\r\n${items.join('')}`;
const map = (...items: readonly string[]): string => `%${items.length / 2}\r\n${items.join('')}`;
const bulks = (...texts: readonly string[]): string => array(...texts.map(bulk));
const OK = '+OK\r\n';
const NIL = '$-1\r\n';
const NIL_ARRAY = '*-1\r\n';
const NULL = '_\r\n';
const integer = (number: number): string => `:${number}\r\n`;

function specOf(asked: string): CommandSpec {
  const [first, second] = asked.toLowerCase().split(' ');
  return table.byName(`${first}|${second}`) ?? table.byName(first)!;
}

function assertSent(effect: Effect, expected: Expected, shown: string): void {
  if (expected === null || typeof expected === 'string' || effect === null || typeof effect === 'string')
    return assert.equal(effect, expected, shown);
  if ('read' in effect || 'asks' in expected) {
    assert.ok('read' in effect && 'asks' in expected, shown);
    const { name, read, reply } = effect;
    assert.equal(read.toString(), encodeCommand(split(expected.asks)).toString(), shown);
    return assert.deepEqual([name, reply.toString()], [expected.asks.split(' ')[0], expected.reply], shown);
  }
  const frames = effect.map(({ frame, reply }) => [frame.toString(), reply === null ? null : reply.toString()]);
  assert.deepEqual(
    frames,
    expected.map(([command, reply]) => [encodeCommand(split(command)).toString(), reply]),
    shown,
  );
}

function check(
  of: EffectOf,
  { asked, reply, sent, protocol = 2, probe, creates = [false, false], counts = false }: Case,
): void {
  const between = {
    authority: { createsConsumers: creates[0], countsEntries: true },
    mirror: { createsConsumers: creates[1], countsEntries: counts },
  };
  const effect = of(split(asked), decoded(reply), protocol, probe === undefined ? undefined : decoded(probe), between);
  assertSent(effect, sent, `${asked} → ${JSON.stringify(reply)}`);
}

const ofEach = (...numbers: readonly number[]): string => array(...numbers.map(integer));
const POPPED = array(bulk('b'), bulks('1', '2'));
const POPPED_SCORES = array(bulk('z'), array(bulks('m', '1'), bulks('n', '2')));
const ENTRY = array(bulk('1-1'), bulks('f', 'v'));
const copiedField = (asked: string): Case => ({ asked, reply: array(integer(1)), sent: 'copy' });
const conditional = (name: string): Case[] => [
  { asked: `${name} k 100`, reply: integer(1), sent: 'verbatim' },
  { asked: `${name} k 100 NX`, reply: integer(1), sent: [[`${name} k 100`, integer(1)]] },
  { asked: `${name} k 100 xx`, reply: integer(1), sent: [[`${name} k 100`, integer(1)]] },
  { asked: `${name} k 100 GT`, reply: integer(0), sent: null },
  { asked: `${name} k 100 XX LT`, reply: integer(1), sent: [[`${name} k 100`, integer(1)]] },
];

const FOUND_IN_X = array(array(bulk('x'), array(ENTRY)));
const ASKED_TWO = 'XREADGROUP GROUP g c STREAMS y x > >';
const created = (key: string): Sent => [`XGROUP CREATECONSUMER ${key} g c`, null];
/** Consumers that find nothing. */
const CONSUMERS: readonly Case[] = [
  {
    asked: ASKED_TWO,
    reply: NIL_ARRAY,
    sent: [[ASKED_TWO, 'same'], created('y'), created('x')],
    creates: [true, false],
  },
  { asked: ASKED_TWO, reply: FOUND_IN_X, sent: [[ASKED_TWO, 'same'], created('y')], creates: [true, false] },
  {
    asked: ASKED_TWO,
    reply: map(bulk('x'), array(ENTRY)),
    protocol: 3,
    sent: [[ASKED_TWO, 'same'], created('y')],
    creates: [true, false],
  },
  {
    asked: 'XREADGROUP GROUP g c BLOCK 0 STREAMS y x > >',
    reply: FOUND_IN_X,
    sent: [['XREADGROUP GROUP g c STREAMS x >', 'same'], created('y')],
    creates: [true, false],
  },
  {
    asked: 'XREADGROUP GROUP group streams STREAMS streams >',
    reply: NIL_ARRAY,
    sent: [
      ['XREADGROUP GROUP group streams STREAMS streams >', 'same'],
      ['XGROUP CREATECONSUMER streams group streams', null],
    ],
    creates: [true, false],
  },
  { asked: ASKED_TWO, reply: NIL_ARRAY, sent: 'verbatim', creates: [true, true] },
  { asked: ASKED_TWO, reply: NIL_ARRAY, sent: null, creates: [false, true] },
  { asked: ASKED_TWO, reply: FOUND_IN_X, sent: [['XREADGROUP GROUP g c STREAMS x >', 'same']], creates: [false, true] },
  {
    asked: 'XAUTOCLAIM x g c 0 0',
    reply: array(bulk('0-0'), '*0\r\n', bulks('1-1')),
    sent: [created('x'), ['XACK x g 1-1', null]],
    creates: [true, true],
  },
  { asked: 'XAUTOCLAIM x g c 0 0', reply: array(bulk('0-0'), '*0\r\n', '*0\r\n'), sent: null, creates: [false, true] },
];

const CASES: readonly Case[] = [
  ...CONSUMERS,
  ...['EXPIRE', 'PEXPIRE', 'EXPIREAT', 'PEXPIREAT'].flatMap(conditional),

  { asked: 'SET k v EX 10 IFEQ nx', reply: OK, sent: [['SET k v EX 10', 'same']] },
  { asked: 'SET k v IFEQ old', reply: NIL, sent: null },
  { asked: 'SET k v IFEQ old GET', reply: bulk('old'), sent: 'copy' },
  { asked: 'DELIFEQ k v', reply: integer(1), sent: [['DEL k', 'same']] },
  { asked: 'DELIFEQ k v', reply: integer(0), sent: null },
  { asked: 'MSETEX 2 a 1 b 2 EX 10', reply: integer(1), sent: 'copy' },
  { asked: 'MSETEX 1 a 1 NX', reply: integer(0), sent: null },

  ...['IFNE old', 'ifdeq 00ff', 'IFDNE 00ff'].flatMap((condition): Case[] => [
    { asked: `SET k v ${condition} PX 10`, reply: OK, sent: [['SET k v PX 10', 'same']] },
    { asked: `SET k v ${condition}`, reply: NIL, sent: null },
    { asked: `SET k v ${condition} GET`, reply: bulk('old'), sent: 'copy' },
  ]),
  { asked: 'DELEX k', reply: integer(1), sent: [['DEL k', 'same']] },
  { asked: 'DELEX k IFNE v', reply: integer(0), sent: null },
  { asked: 'INCREX k', reply: integer(1), sent: 'copy' },
  { asked: 'LMOVEM a b LEFT RIGHT COUNT 2', reply: bulks('x', 'y'), sent: 'copy' },
  { asked: 'XNACK s g FAIL IDS 1 1-1', reply: integer(1), sent: 'copy' },
  { asked: 'XCFGSET s IDMP-DURATION 60', reply: OK, sent: null },
  { asked: 'XIDMPRECORD s p i 1-1', reply: OK, sent: null },
  { asked: 'XDELEX s IDS 3 1-1 2-1 3-1', reply: ofEach(1, -1, 1), sent: [['XDEL s 1-1 3-1', null]] },
  { asked: 'XDELEX s ACKED IDS 2 1-1 2-1', reply: ofEach(2, 1), sent: [['XDEL s 2-1', null]] },
  { asked: 'XDELEX s ACKED IDS 1 1-1', reply: ofEach(2), sent: null },
  { asked: 'XDELEX s delref IDS 2 1-1 2-1', reply: ofEach(1, -1), sent: 'copy' },
  { asked: 'XDELEX s DELREF IDS 1 1-1', reply: ofEach(-1), sent: null },
  {
    asked: 'XACKDEL s ids KEEPREF IDS 3 1-1 2-1 3-1',
    reply: ofEach(1, -1, 2),
    sent: [
      ['XACK s ids 1-1 3-1', null],
      ['XDEL s 1-1', null],
    ],
  },
  { asked: 'XACKDEL s g ACKED IDS 1 1-1', reply: ofEach(2), sent: [['XACK s g 1-1', null]] },
  { asked: 'XACKDEL s g IDS 1 1-1', reply: ofEach(-1), sent: null },
  { asked: 'XACKDEL s g DELREF IDS 1 1-1', reply: ofEach(1), sent: 'copy' },
  ...['IDMP p i', 'IDMPAUTO p', 'idmp IDMP KEEPREF', 'DELREF', 'MAXLEN 2 ACKED'].map((options): Case => ({
    asked: `XADD s NOMKSTREAM ${options} * f v`,
    reply: bulk('5-0'),
    sent: 'copy',
  })),
  {
    asked: 'XADD s KEEPREF MAXLEN 2 * f KEEPREF',
    reply: bulk('5-0'),
    sent: [['XADD s MAXLEN 2 5-0 f KEEPREF', 'same']],
  },
  { asked: 'XADD s * acked delref', reply: bulk('5-0'), sent: [['XADD s 5-0 acked delref', 'same']] },
  { asked: 'XTRIM s MAXLEN 2 KEEPREF', reply: integer(1), sent: [['XTRIM s MAXLEN 2', 'same']] },
  { asked: 'XTRIM s MAXLEN = 2 DELREF', reply: integer(1), sent: 'copy' },
  { asked: 'XTRIM s MAXLEN 2 ACKED', reply: integer(0), sent: null },
  { asked: 'XREADGROUP GROUP g c CLAIM 0 STREAMS s >', reply: array(array(bulk('s'), array(ENTRY))), sent: 'copy' },
  { asked: 'XREADGROUP GROUP g c MAXCOUNT 2 STREAMS s >', reply: array(array(bulk('s'), array(ENTRY))), sent: 'copy' },

  { asked: 'SET k v NX', reply: OK, sent: 'verbatim' },
  { asked: 'SET k v GET', reply: bulk('old'), sent: 'verbatim' },
  { asked: 'SET k v NX GET', reply: NIL, sent: [['SET k v', OK]] },
  { asked: 'set k v get ex 10 nx', reply: NULL, sent: [['set k v ex 10', OK]] },
  { asked: 'SET k v NX GET', reply: bulk('old'), sent: null },
  {
    asked: 'SET k v KEEPTTL',
    reply: OK,
    sent: [
      ['EXISTS k', null],
      ['SET k v KEEPTTL', 'same'],
    ],
  },
  {
    asked: 'INCRBYFLOAT k 0.1',
    reply: bulk('10.6'),
    sent: [
      ['EXISTS k', null],
      ['SET k 10.6 KEEPTTL', OK],
    ],
  },
  { asked: 'HINCRBYFLOAT h f 0.1', reply: bulk('10.6'), sent: [['HSET h f 10.6', null]] },

  { asked: 'SPOP s', reply: bulk('a'), sent: [['SREM s a', integer(1)]] },
  { asked: 'SPOP s', reply: NIL, sent: null },
  { asked: 'SPOP s 2', reply: bulks('a', 'b'), sent: [['SREM s a b', integer(2)]] },
  { asked: 'SPOP s 2', reply: '~2\r\n$1\r\na\r\n$1\r\nb\r\n', protocol: 3, sent: [['SREM s a b', integer(2)]] },
  { asked: 'SPOP s 2', reply: array(), sent: null },

  { asked: 'LPOP l', reply: bulk('a'), sent: 'verbatim' },
  { asked: 'LPOP l', reply: NIL, sent: { asks: 'llen l', reply: integer(0) } },
  { asked: 'LPOP l', reply: NULL, protocol: 3, sent: { asks: 'llen l', reply: integer(0) } },
  { asked: 'LPOP l 2', reply: NIL_ARRAY, sent: { asks: 'llen l', reply: integer(0) } },
  { asked: 'RPOP l', reply: NIL, sent: { asks: 'llen l', reply: integer(0) } },
  { asked: 'RPOP l 0', reply: array(), sent: 'verbatim' },
  { asked: 'LMOVE l m LEFT RIGHT', reply: NIL, sent: { asks: 'llen l', reply: integer(0) } },
  { asked: 'LMOVE l m LEFT RIGHT', reply: bulk('a'), sent: 'verbatim' },
  { asked: 'RPOPLPUSH l m', reply: NIL, sent: { asks: 'llen l', reply: integer(0) } },
  { asked: 'ZPOPMIN z', reply: array(), sent: { asks: 'zcard z', reply: integer(0) } },
  { asked: 'ZPOPMIN z 0', reply: array(), sent: 'verbatim' },
  { asked: 'ZPOPMAX z 2', reply: array(), sent: { asks: 'zcard z', reply: integer(0) } },
  { asked: 'ZPOPMAX z', reply: bulks('m', '1'), sent: 'verbatim' },
  { asked: 'LMPOP 2 a b LEFT COUNT 5', reply: POPPED, sent: [['LPOP b 2', bulks('1', '2')]] },
  { asked: 'LMPOP 2 a b RIGHT', reply: array(bulk('b'), bulks('1')), sent: [['RPOP b 1', bulks('1')]] },
  { asked: 'LMPOP 1 a left', reply: NIL_ARRAY, sent: null },
  { asked: 'BLMPOP 0 2 a b LEFT COUNT 5', reply: POPPED, sent: [['LPOP b 2', bulks('1', '2')]] },
  { asked: 'BLMPOP 0.5 1 a RIGHT', reply: NIL_ARRAY, sent: null },
  { asked: 'ZMPOP 1 z MIN COUNT 2', reply: POPPED_SCORES, sent: [['ZPOPMIN z 2', bulks('m', '1', 'n', '2')]] },
  { asked: 'ZMPOP 1 z MAX COUNT 2', reply: POPPED_SCORES, protocol: 3, sent: [['ZPOPMAX z 2', null]] },
  { asked: 'ZMPOP 1 z MIN', reply: NIL_ARRAY, sent: null },
  { asked: 'BZMPOP 0 2 y z MAX', reply: POPPED_SCORES, sent: [['ZPOPMAX z 2', bulks('m', '1', 'n', '2')]] },
  { asked: 'BZMPOP 1 1 z MIN', reply: NIL_ARRAY, sent: null },

  { asked: 'BLPOP a b 0', reply: bulks('b', 'x'), sent: [['LPOP b', bulk('x')]] },
  { asked: 'BLPOP a 1', reply: NIL_ARRAY, sent: null },
  { asked: 'brpop a b 0', reply: bulks('a', 'x'), sent: [['RPOP a', bulk('x')]] },
  { asked: 'BRPOP a 1', reply: NULL, protocol: 3, sent: null },
  { asked: 'BLMOVE a b LEFT RIGHT 0', reply: bulk('x'), sent: [['LMOVE a b LEFT RIGHT', 'same']] },
  { asked: 'BLMOVE a b LEFT RIGHT 1', reply: NIL, sent: null },
  { asked: 'BRPOPLPUSH a b 0', reply: bulk('x'), sent: [['RPOPLPUSH a b', 'same']] },
  { asked: 'BRPOPLPUSH a b 1', reply: NIL_ARRAY, sent: null },
  { asked: 'BZPOPMIN y z 0', reply: bulks('z', 'm', '1'), sent: [['ZPOPMIN z', bulks('m', '1')]] },
  { asked: 'BZPOPMIN z 1', reply: NIL_ARRAY, sent: null },
  {
    asked: 'BZPOPMAX z 0',
    reply: array(bulk('z'), bulk('m'), ',1.5\r\n'),
    protocol: 3,
    sent: [['ZPOPMAX z', array(bulk('m'), ',1.5\r\n')]],
  },

  { asked: 'XREADGROUP GROUP g c STREAMS s >', reply: array(array(bulk('s'), array(ENTRY))), sent: 'verbatim' },
  {
    asked: 'XREADGROUP GROUP g c COUNT 1 BLOCK 50 STREAMS s t > >',
    reply: array(array(bulk('t'), array(ENTRY))),
    sent: [['XREADGROUP GROUP g c COUNT 1 STREAMS t >', 'same']],
  },
  {
    asked: 'XREADGROUP GROUP g c BLOCK 50 STREAMS s t > >',
    reply: map(bulk('s'), array(ENTRY)),
    protocol: 3,
    sent: [['XREADGROUP GROUP g c STREAMS s >', 'same']],
  },
  {
    // Both had entries: nobody was woken.
    asked: 'XREADGROUP GROUP g c BLOCK 50 STREAMS s t > >',
    reply: array(array(bulk('s'), array(ENTRY)), array(bulk('t'), array(ENTRY))),
    sent: [['XREADGROUP GROUP g c STREAMS s t > >', 'same']],
  },

  { asked: 'XADD s * f v', reply: bulk('5-0'), sent: [['XADD s 5-0 f v', 'same']] },
  { asked: 'XADD s NOMKSTREAM * f v', reply: NIL, sent: null },
  { asked: 'XADD s NOMKSTREAM * f v', reply: bulk('5-0'), sent: [['XADD s NOMKSTREAM 5-0 f v', 'same']] },
  { asked: 'XADD s MAXLEN = 9 * f v', reply: bulk('5-0'), sent: [['XADD s MAXLEN = 9 5-0 f v', 'same']] },
  { asked: 'XADD s MAXLEN 9 5-* f v', reply: bulk('5-3'), sent: [['XADD s MAXLEN 9 5-3 f v', 'same']] },
  {
    asked: 'XADD s MAXLEN ~ 9 LIMIT 100 * f ~',
    reply: bulk('5-0'),
    probe: integer(42),
    sent: [
      ['XADD s 5-0 f ~', 'same'],
      ['XTRIM s MAXLEN 42', null],
    ],
  },
  { asked: 'XADD s MINID ~ 4 * f v', reply: bulk('5-0'), sent: 'copy' },
  { asked: 'XTRIM s MAXLEN 9', reply: integer(3), sent: 'verbatim' },
  { asked: 'XTRIM s MAXLEN ~ 9', reply: integer(0), probe: integer(12), sent: null },
  { asked: 'XTRIM s MINID ~ 9', reply: integer(3), probe: integer(12), sent: [['XTRIM s MAXLEN 12', 'same']] },
  { asked: 'XTRIM s MAXLEN ~ 9', reply: integer(3), sent: 'copy' },
  { asked: 'XCLAIM s g c 5000 1-1', reply: array(ENTRY), sent: [['XCLAIM s g c 0 1-1', 'same']] },
  {
    asked: 'XCLAIM s g c 5000 1-1 2-1 JUSTID',
    reply: bulks('1-1', '2-1'),
    sent: [['XCLAIM s g c 0 1-1 2-1 JUSTID', 'same']],
  },
  { asked: 'XCLAIM s g c 5000 1-1 2-1', reply: array(ENTRY), sent: 'copy' },
  { asked: 'XCLAIM s g c 5000 1-1', reply: array(NIL_ARRAY), sent: 'copy' },
  { asked: 'XAUTOCLAIM s g c 5000 0', reply: array(bulk('0-0'), array(), array()), sent: null },
  {
    asked: 'XAUTOCLAIM s g c 5000 0',
    reply: array(bulk('0-0'), array(ENTRY), bulks('2-1')),
    sent: [
      ['XCLAIM s g c 0 1-1', null],
      ['XACK s g 2-1', null],
    ],
  },
  {
    asked: 'XAUTOCLAIM s g c 5000 0 COUNT 1 JUSTID',
    reply: array(bulk('0-0'), bulks('1-1'), array()),
    sent: [['XCLAIM s g c 0 1-1 JUSTID', null]],
  },
  { asked: 'XAUTOCLAIM s g c 5000 0', reply: array(bulk('0-0'), array(ENTRY)), sent: 'copy' },
  { asked: 'XAUTOCLAIM s g c 5000 0', reply: array(bulk('0-0'), array()), sent: null },
  { asked: 'XSETID s 5-0', reply: OK, sent: 'verbatim' },
  { asked: 'XSETID s 5-0 ENTRIESADDED 7 MAXDELETEDID 4-0', reply: OK, sent: [['XSETID s 5-0', 'same']] },
  { asked: 'XSETID s 5-0 ENTRIESADDED 7 MAXDELETEDID 4-0', reply: OK, sent: 'verbatim', counts: true },
  { asked: 'XGROUP CREATE s g $ MKSTREAM', reply: OK, sent: 'verbatim' },
  { asked: 'XGROUP CREATE s g 0 MKSTREAM ENTRIESREAD 3', reply: OK, sent: [['XGROUP CREATE s g 0 MKSTREAM', 'same']] },
  { asked: 'XGROUP CREATE s g 0 MKSTREAM ENTRIESREAD 3', reply: OK, sent: 'verbatim', counts: true },
  { asked: 'XGROUP SETID s g 0 ENTRIESREAD 3', reply: OK, sent: [['XGROUP SETID s g 0', 'same']] },
  { asked: 'XGROUP SETID s g 0 ENTRIESREAD 3', reply: OK, sent: 'verbatim', counts: true },

  { asked: 'SORT l LIMIT 0 5 STORE d', reply: integer(3), sent: 'verbatim' },
  { asked: 'SORT l BY w* LIMIT 0 5', reply: bulks('a'), sent: 'verbatim' },
  { asked: 'sort l by w* store d', reply: integer(3), sent: 'copy' },
  { asked: 'GEORADIUS g 1 2 3 km COUNT 2', reply: bulks('a'), sent: 'verbatim' },
  { asked: 'GEORADIUS g 1 2 3 km STORE d', reply: integer(1), sent: 'copy' },
  { asked: 'GEORADIUSBYMEMBER g m 3 km STOREDIST d', reply: integer(1), sent: 'copy' },
  { asked: 'GEOSEARCHSTORE d g FROMMEMBER m BYRADIUS 3 km', reply: integer(1), sent: 'copy' },
  { asked: 'RESTORE k 0 payload', reply: OK, sent: 'copy' },
  ...['VADD k VALUES 1 1 e', 'VREM k e', 'VSETATTR k e {}'].map((asked): Case => ({
    asked,
    reply: integer(1),
    sent: 'copy',
  })),
  copiedField('HEXPIRE h 10 FIELDS 1 f'),
  copiedField('HPEXPIRE h 10 FIELDS 1 f'),
  copiedField('HEXPIREAT h 10 FIELDS 1 f'),
  copiedField('HPEXPIREAT h 10 FIELDS 1 f'),
  copiedField('HPERSIST h FIELDS 1 f'),
  copiedField('HSETEX h EX 10 FIELDS 1 f v'),
  copiedField('HGETEX h EX 10 FIELDS 1 f'),
  copiedField('HGETEX h FIELDS 1 f PERSIST'),
  { asked: 'HEXPIRE h 10 NX FIELDS 2 f g', reply: array(integer(0), integer(-2)), sent: null },
  { asked: 'HPERSIST h FIELDS 2 f g', reply: array(integer(-1), integer(-2)), sent: null },
  { asked: 'HSETEX h FNX FIELDS 2 f v ex w', reply: integer(1), sent: [['HSET h f v ex w', null]] },
  { asked: 'HSETEX h FNX EX 10 FIELDS 1 f v', reply: integer(0), sent: null },
  { asked: 'HGETEX h FIELDS 2 ex px', reply: bulks('v', 'w'), sent: null },
  { asked: 'GETDEL k', reply: bulk('v'), sent: 'verbatim' },
  { asked: 'GETDEL k', reply: NIL, sent: { asks: 'exists k', reply: integer(0) } },
  { asked: 'HGETDEL h FIELDS 2 f g', reply: array(NIL, NIL), sent: null },
  { asked: 'HGETDEL h FIELDS 2 f g', reply: array(bulk('v'), NIL), sent: [['HDEL h f g', null]] },

  { asked: 'PUBLISH c m', reply: integer(3), sent: [['PUBLISH c m', null]] },
  { asked: 'SPUBLISH c m', reply: integer(3), sent: [['SPUBLISH c m', null]] },
  { asked: 'CONFIG SET slowlog-max-len 5', reply: OK, sent: null },
  {
    asked: 'CONFIG SET slowlog-max-len 5 notify-keyspace-events KEA',
    reply: OK,
    sent: [['CONFIG SET notify-keyspace-events KEA', null]],
  },
];

/** Blocked clients that were woken together. */
const WOKEN: readonly Case[] = [
  { asked: 'BLPOP a b 0', reply: bulks('b', 'x'), sent: [['LREM b 1 x', integer(1)]] },
  { asked: 'BRPOP a b 0', reply: bulks('b', 'x'), sent: [['LREM b -1 x', integer(1)]] },
  { asked: 'BZPOPMIN z 0', reply: bulks('z', 'm', '1'), sent: [['ZREM z m', integer(1)]] },
  { asked: 'BZPOPMAX z 0', reply: array(bulk('z'), bulk('m'), ',1\r\n'), sent: [['ZREM z m', integer(1)]] },
];

const PROBES: readonly (readonly [asked: string, probe: string | null])[] = [
  ['XADD s * f v', null],
  ['XADD s MAXLEN = 5 * f v', null],
  // A value is no option.
  ['XADD s * f ~', null],
  ['XADD s MAXLEN ~ 5 * f v', 'XLEN s'],
  ['xadd s nomkstream minid ~ 5 limit 10 * f v', 'XLEN s'],
  ['XTRIM s MAXLEN 5', null],
  ['XTRIM s MAXLEN ~ 5', 'XLEN s'],
];

/** The same with 400 ms less. */
const SHORTENED: readonly (readonly [asked: string, sent: string | null])[] = [
  ['EXPIRE k 10', 'PEXPIRE k 9600'],
  ['PEXPIRE k 300 NX', 'PEXPIRE k -100 NX'],
  ['SETEX k 10 v', 'PSETEX k 9600 v'],
  ['PSETEX k 300 v', 'PSETEX k 1 v'],
  ['SET k v EX 10 GET', 'SET k v PX 9600 GET'],
  ['set k v nx px 1000', 'SET k v nx PX 600'],
  ['SET k v EXAT 10', null],
  ['SET EX EX', null],
  ['GETEX k EX 10', 'GETEX k PX 9600'],
  ['GETEX k PERSIST', null],
  ['RESTORE k 1000 payload', 'RESTORE k 600 payload'],
  ['RESTORE k 0 payload', null],
  ['PERSIST k', null],
];

/** The same by a clock that is 400 ms ahead. */
const SHIFTED: readonly (readonly [asked: string, sent: string | null])[] = [
  ['EXPIREAT k 10', 'PEXPIREAT k 10400'],
  ['PEXPIREAT k 10 GT', 'PEXPIREAT k 410 GT'],
  ['SET k v EXAT 10', 'SET k v PXAT 10400'],
  ['SET k v PXAT 10 NX', 'SET k v PXAT 410 NX'],
  ['SET k v EX 10', null],
  ['GETEX k EXAT 10', 'GETEX k PXAT 10400'],
  ['EXPIRE k 10', null],
];

for (const { asked, ...rest } of CASES)
  test(`${asked} ${JSON.stringify(rest.reply).slice(0, 40)}`, () =>
    check(specOf(asked).effect!.of, { asked, ...rest }));

test('the effect of each client that was woken together with others is the removal of the element that it took', () => {
  for (const each of WOKEN) check(specOf(each.asked).effect!.ofWoken!, each);
});

test('what an approximate trim left is asked for right behind it', () => {
  for (const [asked, probe] of PROBES) {
    const frame = specOf(asked).effect!.probe!(split(asked));
    assert.equal(frame?.toString() ?? null, probe === null ? null : encodeCommand(split(probe)).toString(), asked);
  }
});

test('a TTL is sent as the time that is left of it, an absolute expiry by the clock of the mirror', () => {
  for (const [asked, sent] of SHORTENED)
    assert.equal(shortenTtl(split(asked), 400)?.toString() ?? null, sent && encodeCommand(split(sent)).toString());
  for (const [asked, sent] of SHIFTED)
    assert.equal(shiftTtl(split(asked), 400)?.toString() ?? null, sent && encodeCommand(split(sent)).toString());
});

test('entries that XAUTOCLAIM found deleted are a form that KeyDB lacks', () => {
  const form = (reply: string): string | null => table.byName('xautoclaim')!.effect!.form!(decoded(reply));
  assert.equal(form(array(bulk('0-0'), array(ENTRY), array())), null);
  assert.notEqual(form(array(bulk('0-0'), array(ENTRY), bulks('2-1'))), null);
  assert.notEqual(form(array(bulk('0-0'), array(NIL_ARRAY))), null);
});

test('with fewer arguments than the effect looks at, it says that the command is its own', () => {
  for (const { asked, reply } of CASES) {
    const { of, least } = specOf(asked).effect!;
    const args = split(asked);
    if (args.length < least) assert.equal(of(args, decoded(reply), 2), 'verbatim', asked);
  }
});

test('every effect, probe and time to live of the table has a case here', () => {
  const missing = (cases: readonly string[], has: (spec: CommandSpec) => boolean): string[] => {
    const named = new Set(cases.map((asked) => specOf(asked).name));
    return table.all.filter((spec) => has(spec) && !named.has(spec.name)).map(({ name }) => name);
  };
  const asked = (cases: readonly Case[]): string[] => cases.map((each) => each.asked);
  const first = (cases: readonly (readonly [string, string | null])[]): string[] => cases.map(([each]) => each);
  assert.deepEqual(
    missing(asked(CASES), ({ effect }) => effect !== null),
    [],
  );
  assert.deepEqual(
    missing(asked(WOKEN), ({ effect }) => effect !== null && effect.ofWoken !== null),
    [],
  );
  assert.deepEqual(
    missing(first(PROBES), ({ effect }) => effect !== null && effect.probe !== null),
    [],
  );
  assert.deepEqual(
    missing(first(SHORTENED), ({ relativeTtl }) => relativeTtl !== null),
    [],
  );
  assert.deepEqual(
    missing(first(SHIFTED), ({ absoluteTtl }) => absoluteTtl !== null),
    [],
  );
});
