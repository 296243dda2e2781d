/** What a mirror gets for several keys at once, and what it answers. */
import { NO_KEY, lifeFromPttl, pttlOf } from '../../../src/resp/key-life.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CopyBatch } from '../../../src/copy/key/copy-batch.js';
import { encodeDump, TranscodeError, type Value } from '../../../src/copy/rdb/transcode.js';
import { decodeReply } from '../../../src/resp/decode.js';
import { Scalars } from '../../../src/resp/scalars.js';

const held = (value: Value, pttl: number) => ({ payload: encodeDump(value, 9), life: lifeFromPttl(pttl) });
const string = (text: string): Value => ({ type: 'string', bytes: Buffer.from(text) });
const list: Value = { type: 'list', items: [Buffer.from('a')] };
const ABSENT = { payload: null, life: NO_KEY };

function putsOf(keys: Readonly<Record<string, ReturnType<typeof held> | typeof ABSENT>>): CopyBatch<{ key: Buffer }> {
  const puts = new CopyBatch<{ key: Buffer }>(64, true);
  for (const [key, each] of Object.entries(keys)) puts.add({ key: Buffer.from(key) }, each);
  return puts;
}

function commandsIn(frame: Buffer): string[][] {
  const commands: string[][] = [];
  for (let at = 0; at < frame.length;) {
    const { reply, end } = decodeReply(frame, at);
    const [name, ...args] = reply.items!.map(({ data }) => data!.toString('latin1'));
    commands.push(name === 'RESTORE' ? [name, args[0]] : [name, ...args]);
    at = end;
  }
  return commands;
}

function outcomesOf(puts: CopyBatch<{ key: Buffer }>, answers: string): Record<string, unknown> {
  const outcomes: Record<string, unknown> = {};
  const replies = new Scalars(Buffer.from(answers));
  puts.each(
    replies,
    ({ key }, { refusal, removed, life }) => (outcomes[key.toString()] = [refusal, removed, pttlOf(life)]),
  );
  assert.equal(replies.at, answers.length, 'every reply was read');
  return outcomes;
}

const MIXED = {
  list: held(list, -1),
  a: held(string('1'), -1),
  timed: held(string('2'), 5_000),
  absent: ABSENT,
  b: held(string('3'), -1),
  timedList: held(list, 70_000),
};

test('strings without a TTL are one MSET, before what the other keys take in their order', () => {
  const puts = putsOf(MIXED);
  const { frame, shorten } = puts.finish();
  const wanted = (timed: string, timedList: string): string[][] => [
    ['MSET', 'a', '1', 'b', '3'],
    ['RESTORE', 'list'],
    ['SET', 'timed', '2', 'PX', timed],
    ['UNLINK', 'absent'],
    ['RESTORE', 'timedList'],
    ['PEXPIRE', 'timedList', timedList],
  ];
  assert.deepEqual(commandsIn(frame), wanted('5000', '70000'));
  assert.deepEqual(commandsIn(shorten!(1_000)), wanted('4000', '69000'));
  assert.equal(puts.replies, 6);
  assert.deepEqual(
    puts.keys.map(({ key }) => key.toString()),
    ['a', 'b', 'list', 'timed', 'absent', 'timedList'],
  );
});

test('keys of one kind, or none, take no more than their commands', () => {
  const strings = putsOf({ a: held(string('1'), -1) });
  assert.deepEqual(commandsIn(strings.finish().frame), [['MSET', 'a', '1']]);
  assert.deepEqual([strings.replies, strings.finish().shorten], [1, null]);
  const others = putsOf({ list: held(list, -1), absent: ABSENT });
  assert.deepEqual(commandsIn(others.finish().frame), [
    ['RESTORE', 'list'],
    ['UNLINK', 'absent'],
  ]);
  assert.equal(putsOf({}).replies, 0);
});

test('each key gets what the mirror said of it, and every string what it said of the MSET', () => {
  assert.deepEqual(outcomesOf(putsOf(MIXED), '+OK\r\n+OK\r\n+OK\r\n:1\r\n+OK\r\n:1\r\n'), {
    a: [null, null, -1],
    b: [null, null, -1],
    list: [null, null, -1],
    timed: [null, null, 5_000],
    absent: [null, 'deleted', -2],
    timedList: [null, null, 70_000],
  });
  assert.deepEqual(outcomesOf(putsOf(MIXED), '-OOM a\r\n-ERR b\r\n+OK\r\n:0\r\n+OK\r\n-ERR c\r\n'), {
    a: ['OOM a', null, -1],
    b: ['OOM a', null, -1],
    list: ['ERR b', null, -1],
    timed: [null, null, 5_000],
    absent: [null, 'neither', -2],
    timedList: ['ERR c', null, 70_000],
  });
});

test('a key with less than 1 ms left is deleted, and reported as still to expire', () => {
  const ending = { ending: held(string('1'), 0), endingList: held(list, 0) };
  const puts = putsOf(ending);
  assert.deepEqual(commandsIn(puts.finish().frame), [
    ['UNLINK', 'ending'],
    ['UNLINK', 'endingList'],
  ]);
  assert.equal(puts.finish().shorten, null, 'no TTL is sent');
  // The next command of the order may still find the key on the authority: its deadline must be known.
  assert.deepEqual(outcomesOf(puts, ':1\r\n:0\r\n'), {
    ending: [null, 'deleted', 0],
    endingList: [null, 'neither', 0],
  });
});

test('of a string that is damaged nothing is added', () => {
  const puts = putsOf({ a: held(string('1'), -1) });
  const damaged = held(string('2'), -1);
  damaged.payload[1] ^= 1;
  assert.throws(() => puts.add({ key: Buffer.from('b') }, damaged), TranscodeError);
  puts.add({ key: Buffer.from('c') }, held(string('3'), -1));
  assert.deepEqual(commandsIn(puts.finish().frame), [['MSET', 'a', '1', 'c', '3']]);
});
