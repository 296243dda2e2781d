/** The list of slow files names files that exist: a renamed one would be in the default run again. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../../../', import.meta.url));

test('each slow file exists', async () => {
  const { SLOW } = (await import(pathToFileURL(join(ROOT, 'shadow-proxy/build/slow.mjs')).href)) as {
    SLOW: ReadonlySet<string>;
  };
  assert.deepEqual(
    [...SLOW].filter((file) => !existsSync(join(ROOT, file))),
    [],
  );
});
