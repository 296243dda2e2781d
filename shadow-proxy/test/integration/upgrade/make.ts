/**
 * Makes the state folder that a release leaves when it is killed, for the releases after it:
 *
 *   node dist/shadow-proxy/test/integration/upgrade/make.js FOLDER
 *
 * Three workloads in three stages, a backfill and a verification, a mismatch in the ledger, evidence for the gates, and
 * writes that the target has not confirmed: their keys are in the journal.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../../src/local/port.js';
import { Redis } from 'ioredis';
import { startKeydb, startRedis, stopServers } from '../../../src/local/servers.js';
import type { Stage } from '../../../src/route/stage.js';
import { readJournal } from '../../../src/storage/journal-reader.js';
import { readState } from '../../../src/storage/state.js';
import { moveRequest } from '../../support/move.js';
import { METRICS } from '../../../src/telemetry/metrics.js';
import { LEFT, MISMATCH, workloads } from './previous.js';

/** The evidence is written every 10 s. */
const EVIDENCE_MS = 11_000;
const PROGRAM = fileURLToPath(new URL('../../../src/main.js', import.meta.url));

const work = mkdtempSync(join(tmpdir(), 'state-folder-'));
const [source, target] = [await startRedis(), await startKeydb()];
const [port, adminPort] = [await freePort(), await freePort()];
const admin = `http://127.0.0.1:${adminPort}`;
const plan = {
  ...{ version: 1, name: 'previous', workloads, state: join(work, 'state') },
  shards: [{ name: 'a', listen: `redis://127.0.0.1:${port}`, source: source.url, target: target.url }],
  admin: { listen: `127.0.0.1:${adminPort}` },
};
writeFileSync(join(work, 'plan.json'), JSON.stringify(plan));

const proxy = spawn(process.execPath, [PROGRAM, '--plan', join(work, 'plan.json')], { stdio: 'inherit' });
process.once('exit', () => proxy.kill('SIGKILL'));
while (
  !(await fetch(`${admin}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  ))
)
  await sleep(50);
const ask = async (path: string, body?: object): Promise<unknown> => {
  const headers = { 'content-type': 'application/json' };
  const request = body && { method: 'POST', headers, body: JSON.stringify(body) };
  const response = await fetch(`${admin}${path}`, request);
  if (!response.ok) throw new Error(await response.text());
  return response.json();
};
const job = async (kind: string): Promise<void> => {
  await ask('/api/jobs', { kind });
  const state = async (): Promise<string> =>
    ((await ask('/api/jobs')) as { jobs: { job: { state: string } }[] }).jobs[0].job.state;
  while ((await state()) === 'running') await sleep(50);
};

const client = new Redis(port);
const direct = new Redis(target.port);
for (let n = 0; n < 100; n++) for (const name of ['session', 'cart', 'flag']) await client.set(`${name}:${n}`, 'value');
const move = (workload: string, from: Stage, to: Stage, percent?: number): Promise<unknown> =>
  ask(...moveRequest(workload, from, to, { percent }));
for (const workload of ['sessions', 'carts']) await move(workload, 'off', 'dualwrite');
await job('backfill');
for (const workload of ['sessions', 'carts']) await move(workload, 'dualwrite', 'shadow');
await move('carts', 'shadow', 'live', 10);
for (let n = 0; n < 100; n++) await client.get(`session:${n}`);
await job('verify');
await direct.set(MISMATCH, 'changed directly');
await client.get(MISMATCH);
await sleep(EVIDENCE_MS);
await target.kill('SIGSTOP');
await Promise.all(LEFT.map((key) => client.set(key, 'written last')));
proxy.kill('SIGKILL');
await once(proxy, 'exit');
await target.kill('SIGCONT');
for (const each of [client, direct]) each.disconnect();

const folder = join(work, 'state', 'a');
const left = readJournal(folder, await readState(folder, 'a')).keys.map(({ key }) => key.toString());
if (LEFT.some((key) => !left.includes(key))) throw new Error(`the journal has ${left.join(', ')}`);
const [, , into] = process.argv;
mkdirSync(into, { recursive: true });
execFileSync('tar', ['--create', '--gzip', '--file', join(into, 'state.tar.gz'), '--directory', work, 'state']);
const metrics = METRICS.map(({ name, type, labels }) => JSON.stringify({ name, type, labels }));
writeFileSync(join(into, 'metrics.json'), `[\n${metrics.join(',\n')}\n]\n`);
await stopServers();
rmSync(work, { recursive: true });
