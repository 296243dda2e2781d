/** The commands that make the mirror hold the same value as the authority. */
import { NO_KEY, lifeFromPttl, PERSISTENT } from '../../../src/resp/key-life.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRemoval, appendCopy, refusalOf, withTtlsShortened } from '../../../src/copy/key/copy-commands.js';
import { encodeDump, openString, TranscodeError } from '../../../src/copy/rdb/transcode.js';
import type { Value } from '../../../src/copy/rdb/transcode.js';
import { decodeReply } from '../../../src/resp/decode.js';
import { Scalars } from '../../../src/resp/scalars.js';
import { CommandWriter } from '../../../src/resp/command-writer.js';
import { seal } from '../../integration/rdb/seal.js';

const held = (value: Value, pttl: number) => ({ payload: encodeDump(value, 9), life: lifeFromPttl(pttl) });
const string: Value = { type: 'string', bytes: Buffer.from('v') };
const list: Value = { type: 'list', items: [Buffer.from('a')] };

function commandsIn(frame: Buffer): string[][] {
  const commands: string[][] = [];
  for (let at = 0; at < frame.length;) {
    const { reply, end } = decodeReply(frame, at);
    commands.push(
      reply
        .items!.map(({ data }) => (data!.length > 20 ? '…' : data!.toString('latin1')))
        .map((text) => (text.startsWith('\x01') ? '<payload>' : text)),
    );
    at = end;
  }
  return commands;
}

test('each key is put with its time to live, and what waits is put with what is left of it', () => {
  const cases = {
    none: held(string, -1),
    string: held(string, 5_000),
    short: held(string, 30),
    list: held(list, 70_000),
    forever: held(list, -1),
    ended: held(list, 0),
    absent: { payload: null, life: NO_KEY },
  };
  const writer = new CommandWriter();
  const puts = Object.entries(cases).map(([name, each]) => appendCopy({ key: Buffer.from(name) }, each, writer));
  const frame = writer.finish();
  const wanted = (string5s: string, short: string, list: string): string[][] => [
    ['SET', 'none', 'v'],
    ['SET', 'string', 'v', 'PX', string5s],
    ['SET', 'short', 'v', 'PX', short],
    ['RESTORE', 'list', '0', '<payload>', 'REPLACE'],
    ['PEXPIRE', 'list', list],
    ['RESTORE', 'forever', '0', '<payload>', 'REPLACE'],
    ['UNLINK', 'ended'],
    ['UNLINK', 'absent'],
  ];
  assert.deepEqual(commandsIn(frame), wanted('5000', '30', '70000'));
  assert.equal(
    puts.reduce((sum, { commands }) => sum + commands, 0),
    commandsIn(frame).length,
  );
  // SET would refuse 0.
  assert.deepEqual(commandsIn(withTtlsShortened(frame, puts, 60.4)), wanted('4940', '1', '69940'));
});

test('a string is set to what it is, however its payload has it', () => {
  const repeated = [0, 0xc3, 5, 10, 0, 97, 0xe0, 0, 0];
  const payloads: Record<string, Buffer> = {
    short: seal([0, 3, 97, 98, 99], 10),
    empty: seal([0, 0], 10),
    number: seal([0, 0xc1, 0x39, 0x30], 10),
    compressed: seal(repeated, 10),
    "KeyDB's": seal([0, 1, 97, 250, 11, ...Buffer.from('mvcc-tstamp'), 1, 55], 9),
  };
  for (const [name, payload] of Object.entries(payloads)) {
    const writer = new CommandWriter();
    appendCopy({ key: Buffer.from(name) }, { payload, life: PERSISTENT }, writer);
    const value = openString(payload)!.toString('latin1');
    assert.deepEqual(commandsIn(writer.finish()), [['SET', name, value]]);
  }
  const damaged = seal([0, 0xc3, 5, 11, 0, 97, 0xe0, 0, 0], 10);
  const writer = new CommandWriter();
  assert.throws(
    () => appendCopy({ key: Buffer.from('k') }, { payload: damaged, life: PERSISTENT }, writer),
    TranscodeError,
  );
  assert.equal(writer.length, 0, 'nothing of a command that cannot be');
});

test('a key that no longer existed when its value was read is deleted, whatever its TTL was', () => {
  const writer = new CommandWriter();
  const removal = appendCopy({ key: Buffer.from('k') }, { payload: null, life: lifeFromPttl(5_000) }, writer);
  assert.deepEqual(commandsIn(writer.finish()), [['UNLINK', 'k']]);
  const kept = appendCopy({ key: Buffer.from('k') }, held(string, 5_000), new CommandWriter());
  assert.deepEqual([isRemoval(removal), isRemoval(kept)], [true, false]);
});

test('the first refusal among the answers to a key counts, and the next key begins behind them', () => {
  const of = (answers: string, commands: number): readonly [string | null, number] => {
    const replies = new Scalars(Buffer.from(answers));
    const { key, ...rest } = appendCopy({ key: Buffer.from('k') }, held(list, 5_000), new CommandWriter());
    return [refusalOf({ key, ...rest, commands }, replies), replies.at];
  };
  assert.deepEqual(of('+OK\r\n:1\r\n+X\r\n', 2), [null, 9]);
  assert.equal(of('-ERR a\r\n:1\r\n', 2)[0], 'ERR a');
  assert.equal(of('+OK\r\n-ERR b\r\n', 2)[0], 'ERR b');
  assert.equal(of('-ERR a\r\n-ERR b\r\n', 2)[0], 'ERR a');
  assert.equal(of('+OK\r\n-ERR b\r\n', 1)[0], null, 'that is of the next key');
});
