/** The checker of both servers' keys sees each kind of difference. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Equality } from '../../check/equality.js';
import { KeptWorld } from '../../kept/world.js';

/** Each command changes what the two servers compare. */
const CHANGES = {
  string: [['SET k a'], 'APPEND k b'],
  list: [['RPUSH k a b'], 'LMOVE k k LEFT RIGHT'],
  hash: [['HSET k f a'], 'HSET k f b'],
  set: [['SADD k a b'], 'SREM k b'],
  zset: [['ZADD k 1 a 2 b'], 'ZADD k 3 a'],
  stream: [['XADD k 1-0 f a', 'XADD k 2-0 f a'], 'XDEL k 1-0'],
  'last ID of a stream': [['XADD k 1-0 f a'], 'XSETID k 5-0'],
  'consumer group': [['XADD k 1-0 f a', 'XGROUP CREATE k g 0'], 'XGROUP SETID k g $'],
  'pending entry': [
    ['XADD k 1-0 f a', 'XGROUP CREATE k g 0', 'XREADGROUP GROUP g alice STREAMS k >'],
    'XCLAIM k g bob 0 1-0',
  ],
} as const;

for (const [what, [before, change]] of Object.entries(CHANGES))
  test(`A ${what} that one server has differently is seen`, () =>
    KeptWorld.run((kept) => {
      const { source, target, world } = kept;
      const equality = new Equality(source, target);
      const run = (server: typeof source, command: string): void => {
        const args = command.split(' ').map((arg) => `$${arg.length}\r\n${arg}\r\n`);
        const { model } = server;
        const client = model.connect(
          () => undefined,
          () => undefined,
          { host: '10.0.0.9', port: 1 },
        );
        client.receive(Buffer.from(`*${args.length}\r\n${args.join('')}`));
        client.end();
      };
      for (const command of before) for (const server of [source, target]) run(server, command);
      equality.update(world.events.now);
      assert.equal(equality.differing.size, 0);
      run(target, change);
      equality.update(world.events.now);
      assert.deepEqual([...equality.differing.keys()], ['0 k']);
      run(source, change);
      equality.update(world.events.now);
      assert.equal(equality.differing.size, 0);
      return Promise.resolve();
    }));
