/** What the proxy fails at stays with one operation, on the lanes to a replica, too. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Turn } from '../../../src/io/turn.js';
import { Failures, isDefect, OutOfStep, ReplyFailed } from '../../../src/pipeline/failures.js';
import { NOTHING, Operation, type Sink } from '../../../src/pipeline/operation.js';
import { ReplicaLanes, type ReplicaContext } from '../../../src/pipeline/replica-lanes.js';
import type { Workload } from '../../../src/route/router.js';

const FRAME = Buffer.from('*1\r\n$4\r\nPING\r\n');
const REPLY = Buffer.from('+PONG\r\n');

const operationFor = (sink: Sink): Operation =>
  new Operation(FRAME, 0, FRAME.length, sink, undefined, {} as Workload, 0, 2, NOTHING);
const throwing = (thrown: unknown) => (): never => {
  throw thrown;
};

test('a replica’s reply at which the proxy fails is lost to its own client', async () => {
  const problem = new TypeError('broken');
  const logged: unknown[] = [];
  const failures = new Failures((each) => void logged.push(each));
  const connections = { ask: () => Promise.reject(new Error('no replica')), end: () => Promise.resolve() };
  const lanes = new ReplicaLanes({ connections, turn: new Turn(), failures } as unknown as ReplicaContext);
  try {
    const lost: Error[] = [];
    const operation = operationFor({ answered: throwing(problem), lost: (_, reason) => void lost.push(reason) });
    lanes.answered(operation, REPLY, 0, REPLY.length, 1);
    assert.equal(lost[0].cause, problem);
    assert.ok(isDefect(lost[0]) && lost[0] instanceof ReplyFailed);
    // Not even when the loss cannot be handled.
    lanes.answered(operationFor({ answered: throwing(problem), lost: throwing(problem) }), REPLY, 0, REPLY.length, 1);
    assert.deepEqual([failures.count, logged], [3, [problem, problem, problem]]);
  } finally {
    await lanes.close();
  }
});

test('replies that cannot be assigned any more are no failure at one of them', () => {
  const failures = new Failures(() => undefined);
  const broken = new OutOfStep('the server refused EXEC');
  const operation = operationFor({ answered: () => undefined, lost: () => undefined });
  assert.throws(() => failures.at(operation, broken), broken);
  assert.equal(failures.count, 0);
});
