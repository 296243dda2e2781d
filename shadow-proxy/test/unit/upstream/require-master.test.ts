/** A server that a Sentinel, or a node of a cluster, names as the master is used only if it says so itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeReply } from '../../../src/resp/decode.js';
import type { Connection } from '../../../src/upstream/connection.js';
import { requireMaster } from '../../../src/upstream/handshake.js';

const serverWith = (reply: string): Connection =>
  ({ ask: () => Promise.resolve(decodeReply(Buffer.from(reply)).reply) }) as unknown as Connection;

test('A replica is refused until the failover ends, and a master is not', async () => {
  const replica = serverWith('*5\r\n$5\r\nslave\r\n$8\r\n10.0.0.2\r\n:6379\r\n$9\r\nconnected\r\n:1\r\n');
  await assert.rejects(requireMaster(replica, 'a:1'), /^Error: a:1 is a slave, not a master: waiting until/);
  await requireMaster(serverWith('*3\r\n$6\r\nmaster\r\n:1\r\n*0\r\n'), 'a:1');
});

test('A user who may not ask for the role is not kept out', async () => {
  await requireMaster(serverWith("-NOPERM this user has no permissions to run the 'role' command\r\n"), 'a:1');
});
