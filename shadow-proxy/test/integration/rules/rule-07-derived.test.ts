/**
 * Rule 7: a key that is written from a suspect becomes suspect, and an old repair does not clear a newer suspect.
 *
 * Needs real servers: the commands on two keys of every type, among them GEOSEARCHSTORE and PFMERGE.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Argument } from '../../../src/resp/encode.js';
import { until } from '../../support/shard.js';
import { derivations, type Derivation } from './derived.js';
import { withScene, type Scene } from './scene.js';

const FILLER = 'x'.repeat(1 << 20);

type Form = 'alone' | 'in MULTI' | 'in the MULTI that looked';

const FORMS: Record<Form, (d: Derivation) => (readonly Argument[])[]> = {
  alone: ({ look, derive }) => [look, derive],
  'in MULTI': ({ look, derive }) => [look, ['MULTI'], ['INCR', 'n'], derive, ['EXEC']],
  'in the MULTI that looked': ({ look, derive }) => [['MULTI'], look, derive, ['EXEC']],
};

async function prepare(scene: Scene, all: readonly Derivation[]): Promise<void> {
  const replies = await (await scene.wire()).pipeline(all.flatMap(({ setup }) => setup));
  assert.ok(
    replies.every((reply) => !reply.startsWith('-')),
    replies.join(),
  );
  await scene.shard.settled();
}

/** Makes the mirror wrong behind the proxy's back. */
async function spoil({ client, target }: Scene, all: readonly Derivation[]): Promise<void> {
  for (const [command, ...args] of all.flatMap((each) => each.spoil))
    await client({ of: target }).call(String(command), ...(args as string[]));
}

async function derive(scene: Scene, commands: readonly (readonly Argument[])[]): Promise<void> {
  const replies = await (await scene.wire()).pipeline(commands);
  const refused = replies.filter((reply) => reply.startsWith('-') || reply.includes('\r\n-'));
  assert.deepEqual(refused, []);
}

for (const form of Object.keys(FORMS) as Form[]) {
  test(`a derived write ${form}, on its way to the mirror before the difference of what it read is seen`, async () => {
    await withScene({}, async (scene) => {
      const all = derivations('k');
      await prepare(scene, all);
      await spoil(scene, all);
      // The mirror's replies are late, so that no repair comes between.
      scene.toTarget.hold('down');
      await derive(scene, all.flatMap(FORMS[form]));
      await until(() => scene.shard.snapshot().mirror.queuedEffects > 0);
      scene.toTarget.release();
      await scene.assertEqual();
      // Each difference was found once; what came of it is no second finding.
      assert.ok(scene.shard.ledger.total <= all.length, JSON.stringify(scene.shard.snapshot().mismatches));
    });
  });
}

for (const form of ['alone', 'in MULTI'] as const) {
  test(`a derived write ${form} from a suspect that cannot be repaired yet`, async () => {
    await withScene({}, async (scene) => {
      const all = derivations('k');
      await prepare(scene, all);
      // The writes that make the keys right are lost with the mirror's connection; what comes next waits for another.
      await spoil(scene, all);
      scene.toTarget.hold('up');
      const again = all.flatMap(({ setup }) => [['DEL', setup[0][1]], setup[0]]);
      await derive(scene, again);
      await until(() => scene.toTarget.waiting('up') > again.length * 20);
      for (const link of await scene.toTarget.cutClients()) link.cut();
      await until(() => scene.shard.snapshot().suspects.total >= all.length);
      await derive(
        scene,
        all.flatMap((each) => FORMS[form](each).filter((command) => command !== each.look)),
      );
      scene.toTarget.release();
      await scene.assertEqual();
      assert.deepEqual(scene.shard.snapshot().mismatches, {});
    });
  });

  test(`a derived write ${form} that waited for the mirror's connection while the write it reads was lost`, async () => {
    await withScene({}, async (scene) => {
      const all = derivations('k');
      await prepare(scene, all);
      await spoil(scene, all);
      scene.toTarget.hold('up');
      const again = all.flatMap(({ setup }) => [['DEL', setup[0][1]], setup[0]]);
      await derive(scene, again);
      await until(() => scene.toTarget.waiting('up') > again.length * 20);
      // So much is under way that what comes now is not sent before the connection is lost.
      await derive(
        scene,
        Array.from({ length: 16 }, (_, i) => ['SET', `filler:${i}`, FILLER]),
      );
      await derive(
        scene,
        all.flatMap((each) => FORMS[form](each).filter((command) => command !== each.look)),
      );
      assert.ok(scene.shard.snapshot().mirror.queuedBytes > 15 * FILLER.length);
      const cut = scene.toTarget.cutClients();
      for (const link of await cut) link.cut();
      scene.toTarget.release();
      await scene.assertEqual();
      assert.deepEqual(scene.shard.snapshot().mismatches, {});
    });
  });
}

test('a derived write in a workload whose keys are not copied yet is copied', async () => {
  await withScene({ default: { stage: 'off' } }, async (scene) => {
    const all = derivations('k');
    await derive(
      scene,
      all.flatMap(({ setup }) => setup),
    );
    // The mirror has other keys of these names, so that no reply shows the difference.
    for (const [command, ...args] of all.flatMap(({ setup }) => setup))
      await scene.client({ of: scene.target }).call(String(command), ...(args as string[]));
    await spoil(scene, all);
    const consent = { overwrite: true, deleteForeign: false, confirm: all.length * 3 };
    await scene.shard.shard.changeStage({ workload: 'default', stage: 'dualwrite', consent });
    await derive(scene, all.flatMap(FORMS.alone));
    await scene.shard.settled();
    const [source, target] = [scene.client({ of: scene.source }), scene.client({ of: scene.target })];
    for (const { name } of all) {
      const dump = (client: typeof source): Promise<unknown> =>
        client.eval(
          "return {redis.call('TYPE', KEYS[1]).ok, redis.call('SORT', KEYS[2], 'ALPHA')}",
          2,
          `{k}${name}:to`,
          `{k}${name}:none`,
        );
      assert.deepEqual(await dump(target), await dump(source), name);
    }
    assert.equal(scene.shard.snapshot().workloads[0].clean, false);
    // All that was derived is right; what was only read is the backfill's.
    await derive(
      scene,
      all.flatMap(({ setup }) => [['DEL', setup[0][1]]]),
    );
    await scene.assertEqual();
  });
});

/** The authority runs SET and its connection is lost before the reply. */
async function loseReply(scene: Scene, key: string, value: string): Promise<void> {
  const wire = await scene.wire();
  await wire.ask('PING');
  for (const link of scene.toSource.links) link.hold('down');
  wire.send('SET', key, value);
  await until(async () => (await scene.client({ of: scene.source }).get(key)) === value);
  await scene.toSource.cutClients();
  await wire.closed;
}

test('a copy that was read before its key became suspect again does not clear the suspect', async () => {
  await withScene({}, async (scene) => {
    await (await scene.wire()).ask('SET', 'k', 'zero');
    await scene.shard.settled();
    // The first copy is on the mirror, and its confirmation is late.
    scene.toTarget.hold('down');
    await loseReply(scene, 'k', 'one');
    await until(async () => (await scene.client({ of: scene.target }).get('k')) === 'one');
    await loseReply(scene, 'k', 'two');
    scene.toTarget.release();
    await scene.assertEqual();
    assert.equal(await scene.client({ of: scene.target }).get('k'), 'two');
  });
});
