/** A right that KeyDB does not check, used in a transaction. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('EXEC refuses a SORT that KeyDB would run for a user who may not read the keys of its GET', () =>
  KeptWorld.run(
    async (kept) => {
      const sent: string[] = [];
      kept.target.onCommand = (_address, [name]) => sent.push(name);
      const client = await kept.client();
      assert.equal(await client.ask('AUTH limited secret'), '+OK');
      for (const command of ['MULTI', 'SORT mine:list GET theirs:*']) await client.ask(command);
      assert.match(String(await client.ask('EXEC')), /^-EXECABORT/);
      assert.ok(!sent.includes('SORT'));
    },
    { default: { stage: 'rampdown' }, gates: { acceptRights: ['sort', 'debug', 'keydb.hrename'] } },
    (kept) => {
      for (const server of [kept.source, kept.target])
        kept.bypass(server, 'ACL SETUSER limited on >secret ~mine:* &* +@all');
    },
  ));
