/** What a user may not do at the authority is not done on the mirror, where the kit's own user writes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld, type KeptClient } from '../../kept/world.js';
import type { Reply } from '../../clients/replies.js';
import { setUser } from '../../server/acl.js';

/** KeyDB does not check which keys such a script reads. */
const READS_ANY = "return redis.call('SORT', KEYS[1], 'GET', '*')";
const LIVE = { default: { stage: 'live' } };
const ALL = ['on', '>p', '~*', '&*', '+@all'];

function prepare({ source, target }: KeptWorld): void {
  for (const { model } of [source, target]) {
    setUser(model, 'no-multi', [...ALL, '-multi']);
    setUser(model, 'no-pttl', [...ALL, '-pttl']);
    model.addScript(READS_ANY, () => 'read');
  }
}

async function login(kept: KeptWorld, user: string): Promise<KeptClient> {
  const client = await kept.client();
  assert.equal(await client.ask(`AUTH ${user} p`), '+OK');
  return client;
}

/** The gate would not let clients move to KeyDB while there is such a user. */
function makeRestricted({ source, target }: KeptWorld): void {
  for (const { model } of [source, target]) setUser(model, 'some-keys', ['on', '>p', '~k*', '&*', '+@all']);
}

const readAny = (client: KeptClient): Promise<Reply> => client.ask(['EVAL', READS_ANY, '1', 'k']);
const REFUSED = /^-ERR shadow-proxy: a script with SORT/;

test('Without MULTI nothing of a transaction runs', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await login(kept, 'no-multi');
      for (const command of ['MULTI', 'SET k value', 'EXEC']) await client.ask(command);
      assert.match(String(client.replies.at(-1)), /^-/);
      await kept.pass(50);
      await kept.until(() => kept.isClean, 'the workload is clean');
      assert.deepEqual(kept.values('0 k'), [null, null]);
    },
    {},
    prepare,
  ));

test('A user has no rights that the target did not name before its connection was lost', () =>
  KeptWorld.run(
    async (kept) => {
      makeRestricted(kept);
      kept.target.onCommand = (address, [name, what, user]) => {
        if (name !== 'ACL' || what !== 'GETUSER' || user !== 'some-keys') return;
        kept.target.onCommand = () => undefined;
        kept.endOf(kept.target, Number(address.split(':')[1])).connection.cut();
      };
      assert.match(String(await readAny(await login(kept, 'some-keys'))), REFUSED);
    },
    LIVE,
    prepare,
  ));

test('A user that is one too many to be looked up has no rights', () =>
  KeptWorld.run(
    async (kept) => {
      makeRestricted(kept);
      for (let i = 0; i < 100; i++) {
        for (const { model } of [kept.source, kept.target]) setUser(model, `u${i}`, ALL);
        assert.equal(await readAny(await login(kept, `u${i}`)), '$read');
      }
      assert.match(String(await readAny(await login(kept, 'some-keys'))), REFUSED);
    },
    LIVE,
    prepare,
  ));

test('A key whose time to live the user may not ask for is copied behind a write', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await login(kept, 'no-pttl');
      await client.ask('SADD other first');
      kept.bypass(kept.source, 'SADD k old');
      kept.bypass(kept.target, 'SADD k old');
      kept.bypass(kept.source, 'PEXPIRE k 100');
      kept.bypass(kept.target, 'PEXPIRE k 110');
      await kept.pass(102);
      assert.equal(await client.ask('SADD k new'), 1);
      await kept.pass(50);
      await kept.until(() => kept.isClean, 'the workload is clean');
      assert.deepEqual(kept.values('0 k'), Array(2).fill(new Set(['new'])));
    },
    {},
    prepare,
  ));
