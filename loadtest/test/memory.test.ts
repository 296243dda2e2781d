/** When the memory of a long run is flat, and when it leaks. Pure. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ShardSnapshot } from '../../shadow-proxy/src/telemetry/snapshot.js';
import { decodeReply } from '../../shadow-proxy/src/resp/decode.js';
import { bulk, error } from '../../shadow-proxy/src/resp/encode.js';
import { selfTimes } from '../proxy/profile/top.js';
import { warningsOf } from '../rig/status.js';
import { judgeReply, nextRequest, type Request } from '../proxy/soak/traffic.js';
import { trendOf, type MemorySample } from '../proxy/soak/verdict.js';

const MIB = 2 ** 20;
/** Ten minutes, a look every five seconds. */
const run = (rss: (second: number) => number, count = 120): MemorySample[] =>
  Array.from({ length: count }, (_, i) => ({ at: i * 5, rss: rss(i * 5) * MIB }));
const sawtooth = (second: number): number => (second % 35) / 2;

test('memory that only goes up and down with garbage collection is flat', () => {
  assert.equal(trendOf(run((s) => 120 + sawtooth(s))).flat, true);
});

test('memory that grows at first and then stays is flat', () => {
  assert.equal(trendOf(run((s) => 80 + Math.min(s, 150) / 3 + sawtooth(s))).flat, true);
});

test('memory that shrinks is flat', () => {
  assert.equal(trendOf(run((s) => 180 - s / 10)).flat, true);
});

test('a leak of 2 MiB a minute is seen, with and without a sawtooth over it', () => {
  assert.equal(trendOf(run((s) => 100 + s / 30)).flat, false);
  assert.equal(trendOf(run((s) => 100 + s / 30 + sawtooth(s))).flat, false);
});

test('growth of more than a tenth of the memory is reported even under a large sawtooth', () => {
  assert.equal(trendOf(run((s) => 100 + s / 20 + 6 * sawtooth(s))).flat, false);
});

test('a short run gives no trend', () => {
  assert.equal(trendOf(run(() => 100, 30)).flat, null);
  assert.equal(trendOf([]).flat, null);
});

const snapshot = (changes: object): ShardSnapshot =>
  ({
    ...{
      compared: 100,
      mismatches: {},
      inconclusive: {},
      unsupported: {},
      allowed: {},
      suspects: { total: 0, byReason: {} },
    },
    mirror: { lagMs: 0, queuedBytes: 0, queuedEffects: 0, dropped: 0, connected: true },
    ...changes,
  }) as unknown as ShardSnapshot;

test('figures are trusted only when every command was compared and no key is suspect', () => {
  assert.deepEqual(warningsOf(snapshot({}), 100), []);
  const wrong: object[] = [
    { mismatches: { value: 1 } },
    { inconclusive: { lost: 1 } },
    { unsupported: { foo: 1 } },
    { compared: 99 },
  ];
  wrong.push({ suspects: { total: 1, byReason: { x: 1 } } });
  wrong.push({ mirror: { dropped: 1, queuedEffects: 0 } }, { mirror: { dropped: 0, queuedEffects: 1 } });
  for (const change of wrong) assert.equal(warningsOf(snapshot(change), 100).length, 1, JSON.stringify(change));
});

function next(wanted: (request: Request) => boolean): Request {
  for (;;) {
    const request = nextRequest(1000);
    if (wanted(request)) return request;
  }
}

test("the soak's clients tell their own value from another key's, a cut one and an error", () => {
  const write = next(({ args }) => args[0] === 'SET');
  const [, key, value] = write.args as [string, string, Buffer];
  const read = next(({ args }) => args[0] === 'GET' && args[1] === key);
  const answered = (frame: Buffer): string => judgeReply(read, decodeReply(frame).reply);
  assert.equal(answered(bulk(value)), 'right');
  assert.equal(answered(bulk(null)), 'right');
  assert.equal(answered(error('ERR no')), 'error');
  assert.equal(answered(bulk(Buffer.concat([value, Buffer.from('x')]))), 'wrong');
  assert.equal(answered(bulk(value.toString().replace(key, `${key}0`))), 'wrong');
  assert.equal(answered(Buffer.from(':1\r\n')), 'wrong');
});

test('self time is what passes from a sample to the next one', () => {
  const frame = (functionName: string, url = '', lineNumber = 0) => ({ functionName, url, lineNumber });
  const nodes = [
    { id: 1, callFrame: frame('(idle)') },
    { id: 2, callFrame: frame('scan', 'file:///a/b/c/scan.js', 9) },
  ];
  const times = selfTimes({ nodes, samples: [1, 2, 2, 1], timeDeltas: [0, 1000, 2000, 3000] });
  assert.deepEqual(times, [
    { where: 'scan b/c/scan.js:10', self: 5 },
    { where: '(idle)', self: 1 },
  ]);
});
