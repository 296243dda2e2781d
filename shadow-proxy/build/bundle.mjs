/**
 * Puts the files of tests together with what they import, in chunks that they share. A test opens hundreds of modules
 * otherwise, each in a file of its own: for most tests that takes longer than what they do.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { loadEsbuild } from './build.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DIST = join(ROOT, 'dist');
/** The packages of many small files. Each of the others stays where it is. */
const PACKAGES = /^(hdr-histogram-js|ioredis|pino|yaml|zod)$/;

/**
 * @param files compiled files of tests, below `dist`
 * @returns the bundled files, in the same order
 */
export async function bundle(files) {
  const { build, stop } = await loadEsbuild();
  const folder = join(DIST, 'bundles');
  const own = {
    name: 'own',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^[^./]/ }, ({ path, kind, importer }) =>
        kind === 'entry-point' || importer.includes('/node_modules/') || PACKAGES.test(path)
          ? undefined
          : { external: true },
      );
      // A module finds what lies beside it by its own place.
      onLoad({ filter: /dist[/\\].*\.js$/ }, async ({ path }) => ({
        contents: (await readFile(path, 'utf8')).replaceAll('import.meta.url', `'${pathToFileURL(path)}'`),
      }));
    },
  };
  try {
    await build({
      absWorkingDir: ROOT,
      entryPoints: files,
      outbase: DIST,
      outdir: folder,
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
  } finally {
    await stop();
  }
  return files.map((file) => file.replace(DIST, folder));
}
