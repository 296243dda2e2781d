/** Found in profile `mute` (seed 916): a late CLIENT UNBLOCK of a lost connection ended another client's command. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld, type KeptClient } from '../../kept/world.js';

const SILENCE_MS = 30_000;

for (const mayKill of [true, false])
  test(`A late CLIENT UNBLOCK ends no other command${mayKill ? '' : ' where CLIENT KILL is denied'}`, () =>
    KeptWorld.run(async (kept) => {
      if (!mayKill)
        kept.source.model.refuse((_client, name) =>
          name === 'client|kill' ? 'NOPERM this user may not run client|kill' : null,
        );
      const asked: number[] = [];
      const blocked: string[] = [];
      kept.source.onCommand = (address, [name, what]) => {
        if (name === 'BLPOP') blocked.push(address);
        if (name === 'CLIENT' && what === 'UNBLOCK') asked.push(Number(address.split(':')[1]));
      };
      const block = async (key: string): Promise<KeptClient> => {
        const count = blocked.length;
        const client = await kept.client();
        client.send(`BLPOP ${key} 100`);
        await kept.until(() => blocked.length > count, `${key} is waited for`);
        return client;
      };

      (await block('first')).leave();
      await kept.until(() => asked.length > 0, 'the server is asked to unblock it');
      await kept.pass(100);
      const [silent] = asked.splice(0);
      kept.endOf(kept.source, silent).other.silence(SILENCE_MS);
      (await block('second')).leave();
      await kept.until(() => asked.length > 0, 'another connection asks');
      assert.ok(!asked.includes(silent));

      const client = await block('third');
      await kept.pass(SILENCE_MS);
      assert.equal(asked.includes(silent), !mayKill);
      assert.deepEqual(client.replies, []);
      await (await kept.client()).ask('RPUSH third v');
      await kept.until(() => client.replies.length > 0, 'the client is served');
      assert.deepEqual(client.replies, [['$third', '$v']]);
    }));
