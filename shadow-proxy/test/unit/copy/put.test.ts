/** What a mirror is told so that it holds the same. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { put, shortened } from '../../../src/copy/key/put.js';
import { encodeDump } from '../../../src/copy/rdb/transcode.js';
import type { Value } from '../../../src/copy/rdb/transcode.js';
import { decodeReply } from '../../../src/resp/decode.js';
import { CommandWriter } from '../../../src/resp/writer.js';

const held = (value: Value, pttl: number) => ({ payload: encodeDump(value, 9), pttl });
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
    gone: { payload: null, pttl: -2 },
  };
  const writer = new CommandWriter();
  const puts = Object.entries(cases).map(([name, each]) => put({ key: Buffer.from(name) }, each, writer));
  const frame = writer.finish();
  const wanted = (string5s: string, short: string, list: string): string[][] => [
    ['SET', 'none', 'v'],
    ['SET', 'string', 'v', 'PX', string5s],
    ['SET', 'short', 'v', 'PX', short],
    ['RESTORE', 'list', '0', '<payload>', 'REPLACE'],
    ['PEXPIRE', 'list', list],
    ['RESTORE', 'forever', '0', '<payload>', 'REPLACE'],
    ['UNLINK', 'ended'],
    ['UNLINK', 'gone'],
  ];
  assert.deepEqual(commandsIn(frame), wanted('5000', '30', '70000'));
  assert.equal(
    puts.reduce((sum, { commands }) => sum + commands, 0),
    commandsIn(frame).length,
  );
  // SET would refuse 0.
  assert.deepEqual(commandsIn(shortened(frame, puts, 60.4)), wanted('4940', '1', '69940'));
});
