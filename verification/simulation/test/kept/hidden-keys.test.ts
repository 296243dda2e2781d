/** Found in profiles `calm` and `workloads`, seed 720, with scripts that write keys which they do not name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

/** Writes a key that only the server can name. */
const HIDES = "redis.call('SET', KEYS[1] .. ARGV[1], 'v') return 1";

const addScript = ({ source, target }: KeptWorld): void => {
  for (const { model } of [source, target])
    model.addScript(HIDES, ({ call, keys, args }) => {
      call('SET', keys[0] + args[0], 'v');
      return 1;
    });
};

test('What a script wrote is copied, though a script that began later ended earlier', () =>
  KeptWorld.run(
    async (kept) => {
      const [first, second] = [await kept.client(), await kept.client()];
      let port = 0;
      kept.source.onCommand = (address, [name, , , key]) => {
        if (name === 'EVAL' && key === 'a') port = Number(address.split(':')[1]);
      };
      await first.ask(['EVAL', HIDES, '1', 'a', ':0']);
      // Another protocol: another lane.
      await second.ask('HELLO 3');
      await second.ask(['EVAL', HIDES, '1', 'b', ':0']);
      await kept.until(() => kept.isClean, 'the workload is clean');
      kept.endOf(kept.source, port).silence(20);
      first.send(['EVAL', HIDES, '1', 'a', ':1']);
      await kept.pass(2);
      await second.ask(['EVAL', HIDES, '1', 'b', ':1']);
      await kept.until(() => first.replies.length === 2, 'the first script is answered');
      await kept.until(() => kept.isClean, 'the workload is clean');
      assert.deepEqual(
        [kept.values('0 a:1'), kept.values('0 b:1')],
        [
          ['v', 'v'],
          ['v', 'v'],
        ],
      );
    },
    {},
    addScript,
  ));

for (const commands of [
  [['EVAL', HIDES, '1', 'off:', 'on']],
  [['MULTI'], ['EVAL', HIDES, '1', 'off:', 'on'], ['EXEC']],
])
  test(`What a script of a workload in off wrote to a mirrored one is copied (${commands.length} commands)`, () =>
    KeptWorld.run(
      async (kept) => {
        const client = await kept.client();
        await client.ask('SET off:some v');
        for (const command of commands) await client.ask(command);
        assert.equal(kept.isClean, false);
        await kept.until(() => kept.isClean, 'the workloads are clean');
        assert.deepEqual(
          [kept.values('0 off:on'), kept.values('0 off:some')],
          [
            ['v', 'v'],
            ['v', null],
          ],
        );
      },
      { workloads: [{ name: 'mirrored', keys: ['off:on'], stage: 'shadow' }], default: { stage: 'off' } },
      addScript,
    ));
