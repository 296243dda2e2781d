/** How long a command may still block: exact to the millisecond, on a clock that the test sets. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { CommandTable } from '../../../../src/command/table.js';
import { argumentsOf } from '../../../../src/resp/decode.js';
import { encodeCommand } from '../../../../src/resp/encode.js';
import { BlockTime } from '../../../../src/session/handlers/block-time.js';

const TABLE = new CommandTable();

function timeOf(t: TestContext, command: string): { time: BlockTime; now: { ms: number } } {
  const now = { ms: 1_000 };
  t.mock.method(performance, 'now', () => now.ms);
  const frame = encodeCommand(command.split(' '));
  const args = argumentsOf(frame);
  return { now, time: new BlockTime(frame, args, TABLE.byName(command.split(' ')[0].toLowerCase())!.blocking!) };
}

const said = (time: BlockTime, resent: boolean): string =>
  argumentsOf(time.frameNow(resent))
    .map((arg) => arg.toString())
    .join(' ');

for (const [command, afterMs, again] of [
  ['BLPOP k 10', 3_456, 'BLPOP k 6.544'],
  ['BLPOP j k 1.5', 100, 'BLPOP j k 1.4'],
  ['BRPOP k 10', 9_900, 'BRPOP k 0.1'],
  ['BRPOP k 0', 1e9, 'BRPOP k 0'],
  ['BRPOPLPUSH k j 3', 1_000, 'BRPOPLPUSH k j 2'],
  ['BLMOVE k j LEFT RIGHT 2.5', 1_250, 'BLMOVE k j LEFT RIGHT 1.25'],
  ['BLMPOP 10 1 k LEFT', 9_900, 'BLMPOP 0.1 1 k LEFT'],
  ['BZPOPMIN k 60', 59_800, 'BZPOPMIN k 0.2'],
  ['BZPOPMAX k 60', 1, 'BZPOPMAX k 59.999'],
  ['BZMPOP 7 1 k MIN COUNT 2', 700, 'BZMPOP 6.3 1 k MIN COUNT 2'],
  ['XREAD BLOCK 5000 STREAMS s 0', 1_234, 'XREAD BLOCK 3766 STREAMS s 0'],
  ['XREAD COUNT 5 BLOCK 5000 STREAMS s 0', 1_234.4, 'XREAD COUNT 5 BLOCK 3766 STREAMS s 0'],
  ['XREADGROUP GROUP g c BLOCK 200 STREAMS s >', 100, 'XREADGROUP GROUP g c BLOCK 100 STREAMS s >'],
  ['XREAD BLOCK 0 STREAMS s 0', 1e9, 'XREAD BLOCK 0 STREAMS s 0'],
  ['WAIT 1 5000', 1_500, 'WAIT 1 3500'],
  // Never so little that a server takes it for no limit.
  ['BRPOP k 1', 999, 'BRPOP k 0.002'],
  ['BRPOP k 1', 5_000, 'BRPOP k 0.002'],
  ['WAIT 1 5000', 5_000, 'WAIT 1 1'],
] as const)
  test(`${command} after ${afterMs} ms is ${again}`, (t) => {
    const { time, now } = timeOf(t, command);
    assert.equal(said(time, false), command, 'as it came, at first');
    now.ms += afterMs;
    assert.equal(said(time, true), again);
  });

test('sent for the first time, it is as it came, however late; but what a server cuts to no limit is rounded up', (t) => {
  const late = timeOf(t, 'BLPOP k 0.002');
  late.now.ms += 1;
  assert.equal(said(late.time, false), 'BLPOP k 0.002');
  assert.equal(said(timeOf(t, 'BLPOP k 0.001').time, false), 'BLPOP k 0.002');
  assert.equal(said(timeOf(t, 'XREAD BLOCK 1 STREAMS s 0').time, false), 'XREAD BLOCK 1 STREAMS s 0');
});

test('it is over at its end, not before; one without a limit never is', (t) => {
  const { time, now } = timeOf(t, 'BLPOP k 10');
  now.ms += 9_999;
  assert.equal(time.isOver, false);
  now.ms += 1;
  assert.equal(time.isOver, true);
  const endless = timeOf(t, 'BLPOP k 0');
  endless.now.ms += 1e12;
  assert.equal(endless.time.isOver, false);
});

test('what KeyDB takes for no limit: up to 1 ms, where it is asked in seconds', (t) => {
  const isCut = (command: string): boolean => timeOf(t, command).time.isCutByKeydb;
  assert.deepEqual(['BLPOP k 0.001', 'BLPOP k 0.0015', 'BLPOP k 0', 'XREAD BLOCK 1 STREAMS s 0'].map(isCut), [
    true,
    false,
    false,
    false,
  ]);
});
