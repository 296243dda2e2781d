/** A clone is made ready: packages, compilation, the lock of two processes. Real files and processes. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url));
const BUILD = 'shadow-proxy/build';

/** A clone in small: the programs that make a clone ready, with other sources. */
describe('a clone is made ready', () => {
  let clone: string;

  beforeEach(() => {
    clone = mkdtempSync(join(tmpdir(), 'clone-'));
    const skipped = join(ROOT, BUILD, 'node_modules');
    cpSync(join(ROOT, BUILD), join(clone, BUILD), { recursive: true, filter: (path) => !path.startsWith(skipped) });
    symlinkSync(skipped, join(clone, BUILD, 'node_modules'));
    symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
    cpSync(join(ROOT, 'shadow-proxy/native'), join(clone, 'shadow-proxy/native'), { recursive: true });
    const { compilerOptions } = JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8'));
    put('tsconfig.json', JSON.stringify({ compilerOptions, include: ['src'] }));
    put('package.json', '{ "type": "module" }');
    put('src/one.ts', 'export const one: number = 1;\n');
  });
  afterEach(() => rmSync(clone, { recursive: true, force: true }));

  function put(path: string, text: string): void {
    mkdirSync(join(clone, path, '..'), { recursive: true });
    writeFileSync(join(clone, path), text);
  }
  const hasCompiled = (file: string): boolean => existsSync(join(clone, 'dist', file));

  /** @returns its lines, without the dots of a phase that goes on */
  async function build(options: object, env: NodeJS.ProcessEnv = {}): Promise<string[]> {
    const script = `import { build } from './${BUILD}/build.mjs'; await build(${JSON.stringify(options)});`;
    const printed = await new Promise<string>((resolve) => {
      const child = execFile(
        process.execPath,
        ['--input-type=module', '-e', script],
        { cwd: clone, env: { ...process.env, ...env } },
        (error, _stdout, stderr) => resolve(`${stderr}${error === null ? '' : 'failed\n'}`),
      );
      child.stdin!.end();
    });
    return printed
      .trimEnd()
      .split('\n')
      .filter((line) => line !== '' && !/ … \d/.test(line))
      .map((line) => line.replace(/\d+\.\d s/, 'T'));
  }
  const noCompiler = { CC: 'no-such-compiler' };
  const COMPILED = [
    'Compiling …',
    'Compiled 1 files (T).',
    'Building the native module …',
    "No C compiler (no-such-compiler): Node's own sockets do the native module's work, more slowly (T).",
  ];

  test('packages that differ from the lock file are installed, and so is a binary of this system that is missing', async () => {
    const one = { version: '1.0.0', integrity: 'sha512-one', dev: true };
    const two = { ...one, optional: true, os: [process.platform], cpu: [process.arch] };
    const foreign = { ...two, os: ['plan9'] };
    const lock = (packages: object): string => JSON.stringify({ packages });
    put(
      'package-lock.json',
      lock({ 'node_modules/one': one, 'node_modules/two': two, 'node_modules/foreign': foreign }),
    );
    rmSync(join(clone, 'node_modules'));
    put('programs/npm', '#!/bin/sh\nexit 1\n');
    chmodSync(join(clone, 'programs/npm'), 0o755);
    const env = { ...noCompiler, PATH: `${join(clone, 'programs')}:${process.env.PATH}`, npm_execpath: '' };
    const installs = async (packages: object): Promise<boolean> => {
      put('node_modules/.package-lock.json', lock(packages));
      return /npm ci failed/.test((await build({ development: true }, env)).join('\n'));
    };
    assert.equal(await installs({ 'node_modules/one': one, 'node_modules/two': two }), false);
    assert.equal(await installs({ 'node_modules/two': two }), true);
    assert.equal(await installs({ 'node_modules/one': one }), true);
    assert.equal(await installs({ 'node_modules/one': { ...one, version: '0.9.0' }, 'node_modules/two': two }), true);
  });

  test('two processes at once: one compiles, the other waits and finds it done', async () => {
    const both = await Promise.all([build({}, noCompiler), build({}, noCompiler)]);
    const [compiled, waited] = both.sort((a, b) => b.length - a.length);
    assert.deepEqual(compiled, COMPILED);
    assert.ok(
      waited.every((line) => /^Waiting for process \d+, which installs or compiles here …$/.test(line)),
      waited.join('\n'),
    );
  });

  test('the lock of a process that has ended is removed', async () => {
    const child = execFile(process.execPath, ['-e', '']);
    await once(child, 'exit');
    put('dist/.preparing', String(child.pid));
    assert.deepEqual(await build({}, noCompiler), COMPILED);
    assert.ok(!hasCompiled('.preparing'));
  });

  test('a second build of the same sources does nothing, and says nothing', async () => {
    assert.deepEqual(await build({}, noCompiler), COMPILED);
    assert.equal(hasCompiled('src/one.js'), true);
    assert.deepEqual(await build({}, noCompiler), []);
  });

  test('a newer source counts for who runs its folder', async () => {
    put('other/two.ts', 'export const two = 2;\n');
    assert.deepEqual(await build({}, noCompiler), COMPILED);
    put('src/one.ts', 'export const one: number = 2;\n');
    assert.deepEqual(await build({ folders: ['other'] }, noCompiler), []);
    assert.deepEqual(await build({ folders: ['src'] }, noCompiler), COMPILED);
  });

  test('a module whose source was deleted is removed, with its source map', async () => {
    put('src/folder/two.tsx', 'export const two = 2;\n');
    await build({}, noCompiler);
    assert.equal(hasCompiled('src/folder/two.js.map'), true);
    rmSync(join(clone, 'src/folder'), { recursive: true });
    await build({}, noCompiler);
    assert.equal(hasCompiled('src/folder/two.js') || hasCompiled('src/folder/two.js.map'), false);
    assert.equal(hasCompiled('src/one.js'), true);
  });

  test('modules of a folder that moved are removed, and other files of its name are kept', async () => {
    put('old/two.ts', 'export const two = 2;\n');
    put('old/types.ts', 'export interface Two {}\n');
    const { compilerOptions } = JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8'));
    put('tsconfig.json', JSON.stringify({ compilerOptions, include: ['src', 'old'] }));
    await build({}, noCompiler);
    assert.ok(hasCompiled('old/two.js') && hasCompiled('old/types.js'));
    put('dist/old/results.json', '{}');

    renameSync(join(clone, 'old'), join(clone, 'src/new'));
    put('tsconfig.json', JSON.stringify({ compilerOptions, include: ['src'] }));
    await build({}, noCompiler);
    assert.ok(hasCompiled('src/new/two.js') && hasCompiled('src/new/types.js'));
    assert.deepEqual(readdirSync(join(clone, 'dist/old')), ['results.json']);
    rmSync(join(clone, 'src/new'), { recursive: true });
    await build({}, noCompiler);
    assert.equal(hasCompiled('src/new'), false);
  });

  test('the commands are bundled: with packages and their licences, at the places of their modules, without old chunks', async () => {
    const { compilerOptions } = JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8'));
    put('tsconfig.json', JSON.stringify({ compilerOptions, include: ['shadow-proxy/src'] }));
    for (const file of ['cli/shadow-compare.ts', 'front/thread.ts', 'html/draw.ts', 'page/app.tsx'])
      put(`shadow-proxy/src/${file}`, `export const file = '${file}';\n`);
    put(
      'shadow-proxy/src/io/beside.ts',
      "export const beside = new URL('../front/thread.js', import.meta.url).href;\n",
    );
    const main = "import { parse } from 'luaparse';\nimport { beside } from './io/beside.js';\n";
    put(
      'shadow-proxy/src/main.ts',
      `${main}console.log(JSON.stringify([typeof parse, (await import(beside)).file]));\n`,
    );
    put('dist/shadow-proxy/programs/cli/chunk-OLD.js', '');
    await build({}, noCompiler);

    // Neither its packages nor its modules are needed.
    for (const path of ['node_modules', 'dist/shadow-proxy/src']) rmSync(join(clone, path), { recursive: true });
    const program = join(clone, 'dist/shadow-proxy/programs/main.js');
    const { stdout } = await promisify(execFile)(process.execPath, [program]);
    assert.deepEqual(JSON.parse(stdout), ['function', 'front/thread.ts']);
    assert.ok(hasCompiled('shadow-proxy/programs/cli/shadow-compare.js'));
    assert.ok(!hasCompiled('shadow-proxy/programs/cli/chunk-OLD.js'));
    const licences = readFileSync(join(clone, 'dist/shadow-proxy/programs/LICENCES.txt'), 'utf8');
    assert.match(licences, /^luaparse [\d.]+: MIT\n\nCopyright/);
  });

  test('a program runs although a type does not hold; a test does not', async () => {
    put('src/one.ts', 'export const one: string = 1;\n');
    assert.deepEqual(await build({}, noCompiler), COMPILED);
    const checked = await build({ checked: true }, noCompiler);
    assert.match(checked.join('\n'), /src\/one\.ts\(1,14\): error TS2322[^]*the types do not hold \(exit code \d\)\n/);
    put('src/one.ts', 'export const one: number = 1;\n');
    assert.deepEqual(await build({ checked: true }, noCompiler), [
      ...COMPILED,
      'Checking types …',
      'Checked types (T).',
    ]);
    assert.deepEqual(await build({ checked: true }, noCompiler), []);
  });

  test('a source that esbuild cannot read is named with its line', async () => {
    put('src/one.ts', 'export const = 1;\n');
    assert.match((await build({}, noCompiler)).join('\n'), /src\/one\.ts:1:13[^]*the sources do not compile/);
  });
});
