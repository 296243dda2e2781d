/** Found in profile `fenced`, seed 6: the gate `users` was open before the commands of the target were known. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Gate } from '../../../../shadow-proxy/src/stages/gates.js';
import { KeptWorld } from '../../kept/world.js';

/** A KeyDB lets such a user read what a Redis 7 would not. */
const USER = 'ACL SETUSER guest on >secret ~guest &* +@all';
const ASKED_AGAIN_MS = 20_000;

async function gateOf(kept: KeptWorld): Promise<Gate> {
  let gate: Gate | undefined;
  kept.proxy.within(({ shard }) => {
    void shard.evidence().then(({ workloads }) => (gate = workloads[0].gates.find(({ name }) => name === 'users')));
  });
  await kept.until(() => gate !== undefined, 'the gate has an answer');
  return gate!;
}

test('The gate users is unknown as long as a server has not listed its commands', () =>
  KeptWorld.run(
    async (kept) => {
      const { answer, evidence } = await gateOf(kept);
      assert.deepEqual([answer, evidence], ['unknown', 'the target did not list its commands yet: ask again']);
      kept.target.model.refuse(() => null);
      await kept.pass(ASKED_AGAIN_MS);
      assert.equal((await gateOf(kept)).answer, 'no');
    },
    {},
    ({ source, target }) => {
      for (const { model } of [source, target]) {
        const client = model.connect(
          () => undefined,
          () => undefined,
          { host: '10.0.1.9', port: 40_000 },
        );
        client.receive(Buffer.from(`${USER}\r\n`));
        client.end();
      }
      target.model.refuse((_, name) => (name === 'command' ? 'ERR not now' : null));
    },
  ));
