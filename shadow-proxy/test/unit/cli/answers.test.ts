/** What the answers of a proxy must have: whole ones pass, and what lacks a field is named. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { evidence, shardJob, shardSnapshot } from '../../../src/cli/answers.js';
import { AdminClient } from '../../../src/cli/admin-client.js';
import { Fleet } from '../../../src/cli/fleet.js';
import { describeEvent } from '../../../src/storage/history.js';
import { jobSnapshot, shardEvidence, shardSnapshot as snapshot } from '../../support/snapshots.js';

const without = (whole: object, path: string): object => {
  const copy = structuredClone(whole) as Record<string, unknown>;
  const names = path.split('.');
  const last = names.pop()!;
  delete names.reduce((at, name) => at[name] as Record<string, unknown>, copy)[last];
  return copy;
};

test('what a shard says of itself is whole, with a job and without', () => {
  assert.equal(shardSnapshot(snapshot(), ''), null);
  assert.equal(shardSnapshot(snapshot({ job: jobSnapshot(), earlierJobs: [jobSnapshot()] }), ''), null);
  assert.equal(shardJob({ shard: 'a', job: null }, ''), null);
  assert.equal(evidence(shardEvidence(), ''), null);
});

test('what it may have more changes nothing', () => {
  assert.equal(shardSnapshot({ ...snapshot(), unheard: 1 }, ''), null);
});

test('each field that is missing is named, with where it is and what it has to be', () => {
  const whole = snapshot({ job: jobSnapshot() });
  for (const name of Object.keys(whole))
    assert.ok(shardSnapshot(without(whole, name), 'shards[0]')!.startsWith(`shards[0].${name}, a`), name);
  assert.equal(shardSnapshot(without(whole, 'mirror.lagMs'), ''), 'mirror.lagMs, a number');
  assert.equal(
    shardSnapshot(without(whole, 'workloads.0.automatic.guard'), ''),
    'workloads[0].automatic.guard, a boolean',
  );
  assert.equal(shardSnapshot({ ...whole, workloads: {} }, ''), 'workloads, a list');
  assert.equal(shardSnapshot({ ...whole, mismatches: { value: '1' } }, ''), 'mismatches.value, a number');
  assert.equal(shardSnapshot(null, ''), ', an object');
});

/** A proxy of another release: its status lacks a field, and it takes what it is asked to do. */
async function older(t: TestContext): Promise<string> {
  const server: Server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    const change = { workload: 'sessions', from: { stage: 'live', percent: 1 }, to: { stage: 'shadow', percent: 100 } };
    const answer =
      request.url === '/api/status'
        ? { shards: [without(snapshot({ name: 'a' }), 'flips')] }
        : { rollbacks: [{ shard: 'a', workload: 'sessions', changes: [{ ...change, heldMs: 1 }] }] };
    response.end(JSON.stringify(answer));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('the error names the proxy, the field and the likely cause; a rollback of a fleet does not need that field', async (t) => {
  const admin = await older(t);
  const client = new AdminClient({ admin });
  await assert.rejects(client.status(), {
    exit: 3,
    message: `http://${admin}/api/status answers without shards[0].flips, a number: is it a proxy of another version than this shadow-compare? Install both from one release, or give the admin address of the proxy with --admin or --plan`,
  });
  const fleet = new Fleet([client, new AdminClient({ admin: await older(t) })], null);
  assert.equal((await fleet.rollback({ shard: 'a' })).length, 1);
});

test('an event of the history that lacks what its kind has is shown as it is', () => {
  assert.equal(describeEvent({ event: 'stage' }), 'stage {}');
  assert.equal(describeEvent({ event: 'fence', state: 'up', time: 'now' }), 'fence {"state":"up"}');
});
