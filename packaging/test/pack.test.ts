/** What `npm run pack:check` says of a package that is not fit for others. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { problemsOf } from '../npm/pack.js';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'pack-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const GOOD = {
  LICENSE: '',
  'README.md': '[guide](docs/guide.md#first), [site](https://example.com), [below](#below)',
  'docs/guide.md': '',
  'package.json': '{ "bin": { "it": "bin/it.mjs" } }',
  'bin/it.mjs': "import './lib.js';\nimport {\n  one,\n} from '../bin/lib.js';\nawait import('./lib.js');\n",
  'bin/lib.js': "import { two } from 'elsewhere';\n",
};

function judge(files: Readonly<Record<string, string | null>>, size = 1000): string[] {
  const all = Object.entries({ ...GOOD, ...files }).filter(([, text]) => text !== null);
  for (const [path, text] of all) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text!);
  }
  return problemsOf({ name: 'it', file: '', size, folder, files: all.map(([path]) => path) });
}

test('a package that has all that it names is fit', () => {
  assert.deepEqual(judge({}), []);
});

test('what is missing is named: licence, programs, imported files, linked pages', () => {
  assert.deepEqual(judge({ LICENSE: null, 'bin/lib.js': null, 'docs/guide.md': null }), [
    'LICENSE is not packed',
    'bin/it.mjs names ./lib.js, which is not packed',
    'bin/it.mjs names ../bin/lib.js, which is not packed',
    'bin/it.mjs names ./lib.js, which is not packed',
    'README.md names docs/guide.md, which is not packed',
  ]);
  assert.deepEqual(judge({ 'bin/it.mjs': null }), ['bin/it.mjs is not packed']);
});

test('what is too much is named: size, tests, sources, source maps, modules without a source', () => {
  assert.deepEqual(judge({}, 3_000_000), ['3000000 bytes packed: fewer than 3000000 are allowed']);
  const ours = ['bin/test/a.js', 'bin/lib.ts', 'bin/lib.js.map', 'tsconfig.json', 'terraform/main.tf'];
  assert.deepEqual(
    judge({ ...Object.fromEntries(ours.map((path) => [path, ''])), 'bin/lib.d.ts': '' }),
    ours.map((path) => `${path} is packed, and is of no use to others`),
  );
  assert.deepEqual(judge({ 'dist/counters/src/gone.js': '', 'dist/counters/src/index.js': '' }), [
    'dist/counters/src/gone.js is packed, and its source is gone: remove dist/',
  ]);
});
