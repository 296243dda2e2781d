/**
 * The package as its users install it: packed, in a folder of its own, with its types.
 *
 * Needs real processes: npm: the package, packed and installed in an empty folder.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Of the repository; this file runs in `dist/counters/test`. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const USE = `
import { createClient } from 'redis';
import { Redis } from 'ioredis';
import { Counters, type Store } from 'redis-to-keydb-counters';
import { ioredisStore } from 'redis-to-keydb-counters/ioredis';
import { nodeRedisStore } from 'redis-to-keydb-counters/node-redis';

const stores: Store[] = [ioredisStore(new Redis({ lazyConnect: true })), nodeRedisStore(createClient())];
process.stdout.write(\`\${stores.length} \${typeof Counters.open}\`);
`;

test('packed and installed, it runs and type-checks with both clients, as ES and CommonJS modules', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'counters-package-'));
  try {
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', dir], { cwd: join(ROOT, 'counters') });
    const [{ filename, files }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [
      { filename: string; files: { path: string }[] },
    ];
    assert.ok(
      files.every(({ path }) => /^(dist\/|package\.json|README\.md|LICENSE)/.test(path)),
      files.map(({ path }) => path).join(),
    );

    const installed = join(dir, 'node_modules', 'redis-to-keydb-counters');
    await mkdir(installed, { recursive: true });
    await run('tar', ['-xzf', join(dir, filename), '--strip-components=1', '-C', installed]);
    // Their own packages are found from where the links lead.
    for (const name of ['ioredis', 'redis', '@types'])
      await symlink(join(ROOT, 'node_modules', name), join(dir, 'node_modules', name));
    await writeFile(join(dir, 'package.json'), '{ "type": "module" }');
    await writeFile(join(dir, 'use.ts'), USE);
    await writeFile(join(dir, 'use-common.cts'), USE);
    const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
    await run(
      process.execPath,
      [
        tsc,
        '--strict',
        '--skipLibCheck',
        '--types',
        'node',
        '--target',
        'es2022',
        '--module',
        'nodenext',
        'use.ts',
        'use-common.cts',
      ],
      { cwd: dir },
    );
    for (const file of ['use.js', 'use-common.cjs'])
      assert.equal((await run(process.execPath, [file], { cwd: dir })).stdout, '2 function');
    assert.match(await readFile(join(dir, 'use-common.cjs'), 'utf8'), /require\("redis-to-keydb-counters"\)/);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});
