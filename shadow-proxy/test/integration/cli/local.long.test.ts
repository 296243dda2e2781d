/**
 * The emergency rollback on the migration of `shadow-compare local`.
 *
 * Needs real processes: the processes of `local`, of which the proxy is fenced and another one starts.
 */
import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import type { Running } from '../../../src/cli/local/folder.js';
import { Program } from './process.js';

const PATIENCE_MS = 120_000;

test('a proxy that is fenced leaves the servers to the next one', async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'local-'));
  const directory = join(home, 'it');
  const run = async (...args: string[]): Promise<string> => {
    const program = new Program(t, 'shadow-compare', args);
    assert.equal(await program.exit(PATIENCE_MS), 0, program.stderr);
    return program.stdout;
  };
  t.after(async () => {
    await run('local', 'down', '--directory', directory);
    await rm(home, { recursive: true, force: true });
  });
  const { plan, proxy } = JSON.parse(await run('local', 'up', '--directory', directory, '--json')) as Running;
  for (const stage of ['dualwrite', 'shadow', 'live'])
    await run(
      'promote',
      'sessions',
      '--to',
      stage,
      '--force',
      '--force-suspects',
      '--reason',
      'the test',
      '--plan',
      plan,
    );
  assert.match(await run('rollback', '--all', '--offline', '--plan', plan), /stopped the proxy that served it/);
  const next = new Program(t, 'shadow-proxy', ['--plan', plan]);
  await next.prints(/"listening"/, PATIENCE_MS);
  const client = new Redis(proxy);
  t.after(() => client.disconnect());
  assert.equal(await client.set('greeting', 'a'), 'OK');
  client.disconnect();
  next.signal('SIGTERM');
  assert.equal(await next.exit(PATIENCE_MS), 0, next.stderr);
});
