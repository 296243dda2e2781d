/**
 * Puts the files of tests, and the programs that they start, together with what they import, in chunks that they share.
 * Each opens hundreds of modules otherwise, each in a file of its own: for most of them that takes longer than what they
 * do.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { loadEsbuild } from './build.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DIST = join(ROOT, 'dist');
const FOLDER = join(DIST, 'bundles');
/**
 * The packages of many small files. Each of the others stays where it is, and so do those that are imported when they
 * are needed: CommonJS in a bundle has no names for that.
 */
const PACKAGES =
  /^(cli-progress|cli-table3|commander|hdr-histogram-js|ioredis|log-update|luaparse|pino|prom-client|redis|yaml|zod)$/;
/** What the tests start most, by `shadow-proxy/test/support/programs.ts`. */
const PROGRAMS = [
  'shadow-proxy/src/main.js',
  'shadow-proxy/src/cli/shadow-compare.js',
  'shadow-proxy/test/integration/cli/many-commands.js',
];

/**
 * @param files compiled files of tests, below `dist`
 * @returns the bundled files, in the same order; and the folder that has the programs as `dist` has them
 */
export async function bundle(files) {
  const { build, stop } = await loadEsbuild();
  const own = {
    name: 'own',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^[^./]/ }, ({ path, kind, importer }) =>
        kind === 'entry-point' || isInside(importer, path) || (PACKAGES.test(path) && kind !== 'dynamic-import')
          ? undefined
          : { external: true },
      );
      // A module finds what lies beside it by its own place.
      onLoad({ filter: /dist[/\\].*\.js$/ }, async ({ path }) => ({
        contents: (await readFile(path, 'utf8'))
          .replaceAll('import.meta.url', `'${pathToFileURL(path)}'`)
          .replaceAll('import.meta.filename', JSON.stringify(path)),
      }));
    },
  };
  const put = (entryPoints) =>
    build({
      absWorkingDir: ROOT,
      entryPoints,
      outbase: DIST,
      outdir: FOLDER,
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      // CommonJS in there asks for Node's modules.
      banner: {
        js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
      },
      plugins: [own],
      logLevel: 'error',
    });
  try {
    // Chunks are what the same entries have in common: with the tests, a program would have more and smaller ones.
    await Promise.all([put(files), put(PROGRAMS.map((program) => join(DIST, program)))]);
  } finally {
    await stop();
  }
  return { files: files.map((file) => file.replace(DIST, FOLDER)), programs: FOLDER };
}

/** A package brings its own, but OpenTelemetry: a test hides it from the program. */
const isInside = (importer, path) => importer.includes('/node_modules/') && !path.startsWith('@opentelemetry/');
