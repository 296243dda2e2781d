/**
 * Accepts an authority that was restarted or replaced (run ID changed).
 *
 * Needs real servers: a Redis that restarts without its keys has another run ID, and an operator accepts it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { differences } from '../../support/keyspace.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { runCommand } from './process.js';
import { planFor, start, status } from './running.js';

const KEYS = 300;

test('accept lists what an authority has lost, changes nothing without a word, and then has the mirror made equal', async (t) => {
  await withServers(async (servers) => {
    const plan = await planFor(
      servers,
      (plan) => (plan.workloads = [{ name: 'sessions', keys: ['session:*'], stage: 'shadow' }]),
    );
    const { admin, connect } = await start(t, plan);
    const accept = (...args: string[]): ReturnType<typeof runCommand> =>
      runCommand('accept', '--admin', admin, ...args);
    const mirror = new Redis(servers.target.url);
    t.after(() => mirror.disconnect());

    assert.deepEqual(
      [(await accept()).stdout, (await accept('--json')).stdout],
      ['Repairs are not frozen on any shard: there is nothing to accept.\n', '[]\n'],
    );
    const client = connect();
    await Promise.all(Array.from({ length: KEYS }, (_, i) => client.set(`session:${i}`, i)));
    await until(async () => (await mirror.dbsize()) === KEYS);
    await servers.source.restart();
    await until(
      async () =>
        (await connect()
          .set('session:0', 'new')
          .catch(() => null)) === 'OK',
    );
    await until(async () => (await status(admin))[0].frozen !== null);

    const shown = await runCommand('status', '--admin', admin);
    assert.match(shown.stdout, /FROZEN[\s\S]*source\s+restarted\s+or\s+was\s+replaced[\s\S]*shadow-compare\s+accept/);
    const dry = await accept('--dry-run');
    assert.equal(dry.code, 1, dry.stderr);
    assert.match(
      dry.stdout,
      new RegExp(
        `a: verify done: ${KEYS} keys compared, ${KEYS - 1} differ \\(${KEYS - 1} extra\\)\\n  db 0 session:<\\d+ bytes, [0-9a-f]{16}>: only the mirror has it`,
      ),
    );
    const unsaid = await accept();
    assert.deepEqual([unsaid.code, unsaid.stdout], [2, dry.stdout], 'a dry run lists what the real one asks about');
    const jobs = (...more: string[]): ReturnType<typeof runCommand> =>
      runCommand('backfill', '--admin', admin, ...more);
    const [dryJob, job] = [await jobs('--dry-run'), await jobs()];
    assert.deepEqual([dryJob.code, dryJob.stderr], [1, job.stderr], 'a refused backfill, too');
    assert.match(
      unsaid.stderr,
      new RegExp(
        `deleted or overwritten: ${KEYS - 1} keys\\. No terminal to ask on: nothing was changed\\. Confirm with --yes ${KEYS - 1}`,
      ),
    );
    assert.equal(await mirror.dbsize(), KEYS);

    const said = await accept('--yes', String(KEYS), '--shard', 'a');
    assert.equal(said.code, 0, said.stderr);
    assert.match(said.stdout, /a: accepted the source/);
    assert.ok(said.stdout.startsWith(dry.stdout));
    await until(async () => (await status(admin))[0].workloads[0].clean, 20_000);
    assert.deepEqual(
      [await mirror.dbsize(), await mirror.get('session:0'), (await status(admin))[0].frozen],
      [1, 'new', null],
    );

    const again = connect();
    await Promise.all(Array.from({ length: KEYS }, (_, i) => again.set(`session:${i}`, i)));
    await until(async () => (await mirror.dbsize()) === KEYS);
    await servers.source.restart();
    await until(
      async () =>
        (await connect()
          .set('session:0', 'newer')
          .catch(() => null)) === 'OK',
    );
    const given = await accept('--from-mirror', '--yes', String(KEYS));
    assert.equal(given.code, 0, given.stderr);
    assert.match(
      given.stdout,
      new RegExp(`a: restore done: ${KEYS} keys checked, ${KEYS - 1} restored, 1 written since`),
    );
    await until(async () => (await status(admin))[0].workloads[0].clean, 20_000);
    assert.equal(await mirror.dbsize(), KEYS);
    assert.deepEqual(await differences(servers.source, servers.target), []);
  });
});
