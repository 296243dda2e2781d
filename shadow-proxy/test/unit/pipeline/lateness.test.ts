/** How late a reply may be, and by how much a time to live is off for it. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Connection } from '../../../src/upstream/connection.js';
import { Lane } from '../../../src/pipeline/lane.js';
import type { LatencyRecorder } from '../../../src/io/latency.js';
import { Operation, TTL_TOLERANCE_MS, ttlErrorMs, WRITE } from '../../../src/pipeline/operation.js';
import type { Server } from '../../../src/upstream/server.js';
import type { Turn } from '../../../src/io/turn.js';
import { encodeCommand } from '../../../src/resp/encode.js';
import { FrameReader } from '../../../src/resp/frame-reader.js';
import type { Workload } from '../../../src/route/router.js';

const FRAME = encodeCommand(['PEXPIRE', 'k', 100_000]);

/** A lane on a clock that the test sets, from 1000 ms on; each reply answers the oldest command. */
function scene(t: TestContext): { at(ms: number): void; submit(): Operation; reply(): void } {
  let clock = 1000;
  t.mock.method(performance, 'now', () => clock);
  const turn = { now: () => clock } as Turn;
  const connection = { attach: () => undefined, outbox: { add: () => undefined } } as unknown as Connection;
  const latency = { sent: () => undefined, answered: () => undefined } as unknown as LatencyRecorder;
  const answered = (operation: Operation, _buffer: Buffer, _start: number, _end: number, now: number): void =>
    void (operation.answeredAt = now);
  const lane = new Lane(
    {} as Server,
    { db: 0, protocol: 2, credentials: undefined },
    connection,
    latency,
    { answered, lost: () => undefined },
    turn,
  );
  return {
    at: (ms) => (clock = ms),
    submit() {
      const operation = new Operation(FRAME, 0, FRAME.length, null, undefined, {} as Workload, 0, 2, WRITE);
      lane.submit(operation);
      return operation;
    },
    reply() {
      const reader = new FrameReader();
      reader.feed(Buffer.from(':1\r\n'));
      lane.readable(reader);
    },
  };
}

test('what the reply and the confirmation were late adds up', (t) => {
  const { at, submit, reply } = scene(t);
  const operation = submit();
  at(1040);
  reply();
  assert.equal(ttlErrorMs(operation, 1041), 41);
  assert.ok(
    ttlErrorMs(operation, 1080) > TTL_TOLERANCE_MS,
    'each of the two is within the tolerance, both together are not',
  );
});

test('a time to live that was shortened is off from then on, and for what the reply was late', (t) => {
  const { at, submit, reply } = scene(t);
  const operation = submit();
  at(1040);
  reply();
  operation.ttlFrom = 1900;
  assert.equal(ttlErrorMs(operation, 1905), 45);
});

test('a reply was not there when its connection was last read', (t) => {
  const { at, submit, reply } = scene(t);
  submit();
  const operation = submit();
  at(1030);
  reply();
  at(1063);
  reply();
  assert.equal(operation.stalledMs, 33);
});

test('what follows a silence was held back for as long, if it was in flight meanwhile', (t) => {
  const { at, submit, reply } = scene(t);
  const operations = [submit(), submit()];
  at(1500);
  operations.push(submit());
  at(1600);
  reply();
  at(1603);
  operations.push(submit());
  reply();
  at(1606);
  reply();
  at(1609);
  reply();
  assert.deepEqual(
    operations.map(({ stalledMs }) => stalledMs),
    [600, 600, 106, 3],
  );
});

test('a connection that was idle was not silent', (t) => {
  const { at, submit, reply } = scene(t);
  at(9000);
  const operations = [submit(), submit()];
  at(9004);
  reply();
  at(9005);
  reply();
  assert.deepEqual(
    operations.map(({ stalledMs }) => stalledMs),
    [4, 4],
  );
});
