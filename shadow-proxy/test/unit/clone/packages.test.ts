/** What the two commands install, and what each program of `npm run` needs. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url));
const MOST_PACKAGES = 120;
const MOST_BYTES = 100_000_000;
/** Programs that start a program of development, such as tsc, and import none. */
const STARTERS = ['pack:check', 'release:version'];

interface Lock {
  readonly packages: Record<string, { readonly dev?: boolean }>;
}
interface Metafile {
  readonly inputs: Record<
    string,
    { readonly imports: readonly { readonly path: string; readonly external?: boolean }[] }
  >;
}
interface Esbuild {
  build(options: object): Promise<{ metafile: Metafile }>;
  stop(): Promise<void>;
}

const readJson = <T>(path: string): T => JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as T;
const load = <T>(path: string): Promise<T> => import(pathToFileURL(join(ROOT, path)).href) as Promise<T>;

/** Without nested packages: each is counted by itself. */
function bytesOf(folder: string): number {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules')
    .reduce((sum, entry) => {
      const path = join(folder, entry.name);
      return sum + (entry.isDirectory() ? bytesOf(path) : statSync(path).size);
    }, 0);
}

test(`the demo installs at most ${MOST_PACKAGES} packages and ${MOST_BYTES / 1e6} MB`, () => {
  const folders = ['', 'shadow-proxy/build/'].flatMap((place) =>
    Object.entries(readJson<Lock>(`${place}node_modules/.package-lock.json`).packages)
      .filter(([, { dev }]) => dev !== true)
      .map(([path]) => join(ROOT, place, path)),
  );
  const bytes = folders.reduce((sum, folder) => sum + bytesOf(folder), 0);
  assert.ok(folders.length <= MOST_PACKAGES, `${folders.length} packages`);
  assert.ok(bytes <= MOST_BYTES, `${bytes} bytes`);
});

test('a program of npm run installs the packages of development where it uses one, and only there', async () => {
  const { PROGRAMS, DEVELOPMENT } = await load<{ PROGRAMS: Record<string, string[]>; DEVELOPMENT: Set<string> }>(
    'shadow-proxy/bin/bootstrap.mjs',
  );
  const esbuild = await load<Esbuild>('shadow-proxy/build/node_modules/esbuild/lib/main.js');
  const { dependencies, optionalDependencies } = readJson<Record<string, object>>('package.json');
  const runs = new Set([...Object.keys(dependencies), ...Object.keys(optionalDependencies)]);
  const entries = { ...PROGRAMS, 'shadow-proxy': ['shadow-proxy/src/main.js'] };
  const users: string[] = [];
  try {
    for (const [program, [script]] of Object.entries(entries)) {
      const { metafile } = await esbuild.build({
        ...{ absWorkingDir: ROOT, entryPoints: [script.replace(/\.js$/, '.ts')], outdir: 'not-written', write: false },
        ...{ bundle: true, packages: 'external', platform: 'node', format: 'esm', metafile: true, logLevel: 'silent' },
      });
      const imported = Object.values(metafile.inputs).flatMap(({ imports }) =>
        imports.filter(({ external, path }) => external && !isBuiltin(path)).map(({ path }) => path),
      );
      if (imported.some((path) => !runs.has(/^(@[^/]+\/)?[^/]+/.exec(path)![0]))) users.push(program);
    }
  } finally {
    await esbuild.stop();
  }
  assert.deepEqual([...users, ...STARTERS].toSorted(), [...DEVELOPMENT].toSorted());
});
