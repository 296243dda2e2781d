/**
 * Puts a program together with what it imports: otherwise it opens hundreds of modules, each in a file of its own, and
 * that takes most of its start. Tests are put together, too, in chunks that they share.
 *
 *   dist/shadow-proxy/src ─▶ dist/shadow-proxy/programs    the two commands, and the files that they read by a path
 *   dist/…/*.test.js      ─▶ dist/bundles                  the tests, in a run of many files
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TOOLS = fileURLToPath(new URL('.', import.meta.url));
const DIST = join(ROOT, 'dist');
const SOURCES = join(DIST, 'shadow-proxy', 'src');
/** Has the programs where `SOURCES` has them. */
export const PROGRAMS = join(DIST, 'shadow-proxy', 'programs');
const TESTS = join(DIST, 'bundles');
const LICENCES = 'LICENCES.txt';
/** The commands, each with the folder of its chunks. One has no chunk of the other: it would have more and smaller ones. */
const COMMANDS = { 'main.js': '.', 'cli/shadow-compare.js': 'cli' };
/** A worker's file, and those that browsers get. */
const FILES = ['front/thread.js', 'html/draw.js', 'page/app.js'];
/**
 * The packages of many small files that tests use. Each of the others stays where it is, and so do those that are
 * imported when they are needed: CommonJS in a bundle has no names for that.
 */
const PACKAGES =
  /^(cli-progress|cli-table3|commander|hdr-histogram-js|ioredis|log-update|luaparse|pino|prom-client|redis|yaml|zod)(\/|$)/;
/** Optional: the program says so where they are not installed. */
const OPTIONAL = /^@opentelemetry\//;

export const loadEsbuild = () => import(pathToFileURL(join(TOOLS, 'node_modules', 'esbuild', 'lib', 'main.js')).href);

/** The compiled modules that find others by their own place, with their text. */
const placedModules = () =>
  new Map(
    filesBelow(DIST)
      .filter((path) => path.endsWith('.js') && !path.startsWith(TESTS) && !path.startsWith(PROGRAMS))
      .map((path) => [path, readFileSync(path, 'utf8')])
      .filter(([, text]) => text.includes('import.meta.')),
  );

/**
 * @param placed of `placedModules`
 * @param isWanted whether the package that our code imports becomes a part
 * @param placeOf the place that a module finds others by, as an expression of its own code
 */
const parts = (placed, isWanted, placeOf) => ({
  name: 'parts',
  setup({ onResolve, onLoad }) {
    // A package brings its own packages.
    onResolve({ filter: /^[^./]/ }, ({ path, kind, importer }) =>
      kind === 'entry-point' || importer.includes('/node_modules/') || (kind !== 'dynamic-import' && isWanted(path))
        ? undefined
        : { external: true },
    );
    // esbuild asks only for these: to be asked for each module takes as long as all the rest.
    const names = [...placed.keys()].map((path) => path.replace(/[^\w]/g, '\\$&'));
    onLoad({ filter: new RegExp(`^(${names.join('|')})$`) }, ({ path }) => ({
      contents: placed
        .get(path)
        .replaceAll('import.meta.url', placeOf(path))
        .replaceAll('import.meta.filename', JSON.stringify(path)),
    }));
  },
});

const COMMON = {
  absWorkingDir: ROOT,
  bundle: true,
  format: 'esm',
  platform: 'node',
  logLevel: 'error',
};
/** CommonJS in there asks for Node's modules. */
const BANNER = {
  js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
};

/** The two commands, as they run; compiled before. A clone without them has none. */
export async function bundlePrograms() {
  if (!existsSync(join(SOURCES, 'main.js'))) return;
  const { build, stop } = await loadEsbuild();
  const placed = placedModules();
  const common = { ...COMMON, sourcemap: true, sourcesContent: false, metafile: true };
  const command = ([file, folder]) => {
    const outdir = join(PROGRAMS, folder);
    const placeOf = (path) => {
      const place = relative(outdir, join(PROGRAMS, relative(SOURCES, path))).replaceAll('\\', '/');
      return `new URL('${place}', import.meta.url).href`;
    };
    return build({
      ...{ ...common, banner: BANNER, entryPoints: [join(SOURCES, file)], outdir, splitting: true },
      plugins: [parts(placed, (name) => !OPTIONAL.test(name), placeOf)],
    });
  };
  const files = { entryPoints: FILES.map((file) => join(SOURCES, file)), outbase: SOURCES, outdir: PROGRAMS };
  try {
    const made = await Promise.all([
      ...Object.entries(COMMANDS).map(command),
      build({ ...common, ...files, packages: 'external' }),
    ]);
    const outputs = made.flatMap(({ metafile }) => Object.keys(metafile.outputs)).map((path) => join(ROOT, path));
    for (const path of filesBelow(PROGRAMS)) if (!outputs.includes(path)) rmSync(path);
    writeFileSync(join(PROGRAMS, LICENCES), licences(made.flatMap(({ metafile }) => Object.keys(metafile.inputs))));
  } finally {
    await stop();
  }
}

const filesBelow = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));

/** The licences of the packages that the files are from. */
function licences(files) {
  const folders = new Set(files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file) ?? []));
  return [...folders]
    .toSorted()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
      const file = readdirSync(join(ROOT, folder)).find((each) => /^licen[cs]e/i.test(each));
      const text = file === undefined ? '' : readFileSync(join(ROOT, folder, file), 'utf8').trim();
      return `${name} ${version}: ${license}\n\n${text}\n`;
    })
    .join(`\n${'-'.repeat(80)}\n\n`);
}

/**
 * @param files compiled files of tests, and of programs that only they start, below `dist`
 * @returns the bundled files, in the same order
 */
export async function bundleTests(files) {
  const { build, stop } = await loadEsbuild();
  try {
    await build({
      ...{ ...COMMON, banner: BANNER, entryPoints: files, outbase: DIST, outdir: TESTS, splitting: true },
      // A module finds what lies beside it by its own place.
      plugins: [
        parts(
          placedModules(),
          (name) => PACKAGES.test(name),
          (path) => `'${pathToFileURL(path)}'`,
        ),
      ],
    });
  } finally {
    await stop();
  }
  return files.map((file) => file.replace(DIST, TESTS));
}
