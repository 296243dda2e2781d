/** Whom clients of a cluster are sent to, and that no server's redirection is passed on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClusterFace, type FaceNode } from '../../../src/session/cluster-face.js';

const node = (name: string, port: number, first: number, last: number): FaceNode => ({
  name,
  id: name,
  address: { host: '10.0.0.1', port },
  slots: [[first, last]],
  replica: null,
});
const [own, other] = [node('a', 7000, 0, 99), node('b', 7001, 100, 199)];
const face = new ClusterFace([own, other], own);
const instead = (reply: string): string | null => {
  const bytes = Buffer.from(`xx${reply}\r\n`);
  return face.insteadOf(bytes, 2, bytes.length)?.toString() ?? null;
};

test('a slot is this shard’s, another’s, or nobody’s', () => {
  assert.deepEqual(
    [99, 100, 199, 200].map((slot) => face.redirect(slot)),
    [null, 'MOVED 100 10.0.0.1:7001', 'MOVED 199 10.0.0.1:7001', 'CLUSTERDOWN Hash slot not served'],
  );
  assert.equal(face.assignedSlots, 200);
});

test('a frozen slot is refused with the reason, others are not', () => {
  face.freeze(new Map([[7, 'is moving']]));
  assert.deepEqual([face.redirect(7), face.redirect(8)], ['TRYAGAIN shadow-proxy: slot 7 is moving', null]);
  face.freeze(new Map());
  assert.equal(face.redirect(7), null);
});

test('MOVED and ASK of a server become TRYAGAIN, other errors stay', () => {
  const tryAgain = '-TRYAGAIN shadow-proxy: slot 42 is moving to another node of the cluster\r\n';
  assert.deepEqual([instead('-MOVED 42 10.0.0.9:6379'), instead('-ASK 42 10.0.0.9:6379')], [tryAgain, tryAgain]);
  // EXEC that ran nothing, because a server refused one of its commands.
  const aborted = '-EXECABORT Transaction discarded because of: ';
  assert.deepEqual(
    [instead(`${aborted}MOVED 42 10.0.0.9:6379`), instead(`${aborted}ASK 42 a:1`)],
    [tryAgain, tryAgain],
  );
  assert.equal(instead(`${aborted}OOM command not allowed`), null);
  for (const reply of ['-ERR x', '-CLUSTERDOWN The cluster is down', '-MOVED', '+MOVED 42 x', '-ASKED 42 x'])
    assert.equal(instead(reply), null, reply);
});
