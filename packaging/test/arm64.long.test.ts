/**
 * The proxy on arm64, as far as a machine of another kind shows it: the native module is cross-compiled, and Node for
 * arm64 runs the proxy under qemu-user. What qemu does not show is in docs/install.md.
 *
 * Needs real processes: Node and the native module for arm64, under qemu-user.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { stringify } from 'yaml';
import { planFor, status } from '../../shadow-proxy/test/integration/cli/running.js';
import { compareKeyspaces } from '../../shadow-proxy/test/integration/random/comparer.js';
import { lacking, needs } from '../../shadow-proxy/test/support/needs.js';
import { scratch } from '../../shadow-proxy/test/support/plans.js';
import { withServers } from '../../shadow-proxy/test/support/servers.js';
import { until } from '../../shadow-proxy/test/support/shard.js';
import { Wire } from '../../shadow-proxy/test/support/wire.js';
import { fetchNode } from '../npm/nodes.js';

/** Of the repository; this file runs in `dist/packaging/test`. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const COMPILER = 'aarch64-linux-gnu-gcc';
/** Where the packages of Debian and Ubuntu put its C library. */
const LIBRARIES = '/usr/aarch64-linux-gnu';
/** qemu takes 11 s of CPU to load the proxy. */
const START_MS = 60_000;
/** Of what is held in a ring, of what is not, and of what needs many reads. */
const SIZES = [1, 95, 97, 4_096, 65_537, 300_000];
const COMMANDS = 200;

interface Build {
  compileNative(compiler: string, made: string): Promise<{ output: string; failure: string | null }>;
}

/** The compiled proxy, with the module of arm64 in place of this machine's. @returns its main file */
async function proxyForArm(folder: string): Promise<string> {
  const url = pathToFileURL(join(ROOT, 'shadow-proxy/build/build.mjs'));
  const { compileNative } = (await import(url.href)) as Build;
  const native = join(folder, 'dist/shadow-proxy/native');
  mkdirSync(native, { recursive: true });
  for (const part of ['dist/shadow-proxy/src', 'dist/counters/src', 'package.json'])
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const { output, failure } = await compileNative(COMPILER, join(native, 'front.node'));
  assert.equal(failure, null, output);
  return join(folder, 'dist/shadow-proxy/src/main.js');
}

async function serveAndCompare(t: TestContext, command: readonly string[], threads: number): Promise<void> {
  await withServers(async (servers) => {
    const plan = await planFor(servers, (plan) => Object.assign(plan, { threads, default: { stage: 'shadow' } }));
    const file = join(scratch(t), 'plan.yaml');
    writeFileSync(file, stringify(plan));
    const proxy = spawn(command[0], [...command.slice(1), '--plan', file], { stdio: ['ignore', 'pipe', 'pipe'] });
    t.after(() => proxy.kill('SIGKILL'));
    let said = '';
    for (const stream of [proxy.stdout, proxy.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
    await until(
      () => said.includes('"listening"') || proxy.exitCode !== null,
      START_MS,
      () => said,
    );
    assert.equal(proxy.exitCode, null, said);
    assert.doesNotMatch(said, /native module/, 'the module of arm64 is used');

    const port = Number(new URL(plan.shards[0].listen).port);
    const wires = await Promise.all([1, 2, 3].map(() => Wire.open({ port })));
    t.after(() => wires.forEach(({ socket }) => socket.destroy()));
    for (const [i, wire] of wires.entries()) {
      for (const size of SIZES) {
        assert.equal(await wire.ask('SET', `k:${i}:${size}`, `${i}`.repeat(size)), '+OK');
        assert.equal(await wire.ask('GET', `k:${i}:${size}`), `$${size}\r\n${`${i}`.repeat(size)}`);
      }
      for (let n = 1; n <= COMMANDS; n++) assert.equal(await wire.ask('INCR', `n:${i}`), `:${n}`);
    }
    const admin = `http://${plan.admin.listen}`;
    await until(async () => (await status(admin))[0].mirror.queuedEffects === 0);
    const [snapshot] = await status(admin);
    assert.ok(snapshot.compared >= wires.length * COMMANDS, `${snapshot.compared} replies were compared`);
    assert.deepEqual(snapshot.mismatches, {});
    const { keys, differences } = await compareKeyspaces(servers.source, servers.target);
    assert.deepEqual({ keys, differences }, { keys: wires.length * (SIZES.length + 1), differences: [] });
  });
}

test('the proxy serves and compares on arm64, with native sockets, without front threads and with one', async (t) => {
  if (!(await needs(t, 'linux', 'aarch64-gcc', 'qemu-aarch64'))) return;
  const folder = scratch(t);
  const node = process.env.NODE_ARM64 ?? (await fetchNode(join(folder, 'node'), 24, 'arm64').catch(() => null));
  if (node === null) return t.skip(lacking('node-arm64'));
  const command = ['qemu-aarch64', '-L', LIBRARIES, node, await proxyForArm(join(folder, 'kit'))];
  for (const threads of [0, 1]) await serveAndCompare(t, command, threads);
});
