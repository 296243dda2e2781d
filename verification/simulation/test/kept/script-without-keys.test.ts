/** Found in profile `shared`, seed 907: with a key of another shard, a transaction ran a script at the wrong server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const UNDECLARED = "return redis.call('APPEND', ARGV[1], 'v')";
const SERVERS = { source: 'redis://10.0.0.2:6379', target: 'redis://10.0.0.3:6379' };

for (const [commands, what] of [
  [['GET b', 'EVAL'], 'behind it'],
  [['EVAL', 'GET b'], 'before it'],
] as const)
  test(`A script without declared keys does not run where a transaction has a key of another shard ${what}`, () =>
    KeptWorld.run(
      async (kept) => {
        const client = await kept.client();
        await client.ask('SET a v');
        await client.ask('MULTI');
        for (const command of commands) await client.ask(command === 'EVAL' ? ['EVAL', UNDECLARED, '0', 'a'] : command);
        assert.match(String(client.replies.at(-1)), /spans workload "(default|other shards)"/);
        assert.match(String(await client.ask('EXEC')), /^-EXECABORT/);
        await kept.until(() => kept.isClean, 'the workload is clean');
        assert.deepEqual(kept.values('0 a'), ['v', 'v']);
      },
      {
        shards: [{ name: 's0', listen: 'redis://10.0.0.1:7000', ...SERVERS, owns: { slots: '8192-16383' } }],
        default: { stage: 'rampdown' },
      },
      ({ source, target }) => {
        for (const { model } of [source, target])
          model.addScript(UNDECLARED, ({ call, args }) => call('APPEND', args[0], 'v'));
      },
    ));
