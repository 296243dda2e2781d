/** Whether a mirror's replicas keep up: from what its INFO says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lagProblem } from '../../../src/copy/job/replica-lag.js';

const info = (...replicas: string[]): string =>
  ['role:master', ...replicas.map((each, i) => `slave${i}:${each}`), 'master_repl_offset:5000', ''].join('\r\n');

test('a replica that is behind by more than is allowed is named, with both figures', () => {
  const near = 'ip=10.0.0.1,port=6379,state=online,offset=4900,lag=0';
  const far = 'ip=10.0.0.2,port=6380,state=online,offset=1000,lag=4';
  assert.equal(lagProblem(info(), 0), null, 'no replica');
  assert.equal(lagProblem(info(near, far), 4_000), null);
  assert.match(lagProblem(info(near, far), 3_999)!, /^10\.0\.0\.2:6380 by 3\.9 KiB, at most 3\.9 KiB$/);
});

test('a replica that synchronizes still is behind', () => {
  assert.equal(
    lagProblem(info('ip=10.0.0.1,port=6379,state=wait_bgsave,offset=0,lag=0'), 1e9),
    '10.0.0.1:6379 is in state wait_bgsave',
  );
});
