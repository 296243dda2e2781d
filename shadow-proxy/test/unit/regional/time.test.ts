/** The counters of a shard take time and chance where the proxy does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TcpSocket } from '../../../src/io/sockets.js';
import { Turn } from '../../../src/io/turn.js';
import { useWorld } from '../../../src/io/world.js';
import { Regional } from '../../../src/regional/regional.js';
import { Connection } from '../../../src/upstream/connection.js';
import { openSocket } from '../../../src/upstream/open-socket.js';
import type { Server } from '../../../src/upstream/server.js';
import { watched } from '../../support/fake-clock.js';
import { BEGINS_AT, OtherWorld } from '../../support/other-world.js';

const REPLIES = { HSET: ':1\r\n', HKEYS: '*0\r\n', HGETALL: '*0\r\n', GET: '$-1\r\n' };

test('a shard enters itself as a writer, and says that it lives, by the clock of its world', async (t) => {
  const world = new OtherWorld();
  useWorld(world);
  t.after(() => useWorld(null));
  /** Unix ms that it said, and when. */
  const heartbeats: (readonly [said: number, at: number])[] = [];
  world.listeners.set(6379, (socket: TcpSocket) =>
    socket.on('data', (bytes: Buffer) => {
      for (const [, command, words] of bytes.toString().matchAll(/\*\d+\r\n\$\d+\r\n([A-Z]+)((?:\r\n[^*\r]+)*)\r\n/g)) {
        const said = Number(words.split('\r\n').at(-1));
        if (command === 'HSET' && said > 1) heartbeats.push([said, world.unixMs()]);
        socket.write(REPLIES[command as keyof typeof REPLIES]);
      }
    }),
  );
  const server = {
    endpoint: { credentials: undefined },
    open: async () => new Connection(await openSocket({ host: 'keydb', port: 6379 }, null, 1_000), new Turn()),
  };
  const regional = new Regional({ server: server as unknown as Server, region: 'eu', shard: 'sessions' });
  const opened = watched(regional.counters());
  await world.advance(499);
  assert.equal(opened.state, 'pending');
  await world.advance(1);
  assert.equal(opened.state, 'fulfilled');
  await world.advance(1_000);
  assert.deepEqual(
    heartbeats.map(([said, at]) => [said - BEGINS_AT, at - BEGINS_AT]),
    [1, 501, 751, 1_001, 1_251, 1_501].map((ms) => [ms, ms]),
  );
  regional.close();
});
