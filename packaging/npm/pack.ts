/** The packages as npm packs them, and what may be wrong with what is in them. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../../verification/rehearsal/run.js';

/** Of the repository; this file runs in `dist/packaging/npm`. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const MOST_BYTES = 3_000_000;
const MODULE = 'dist/shadow-proxy/native/front.node';
/** Of the packages that are in the bundled programs. */
const LICENCES = 'dist/shadow-proxy/programs/LICENCES.txt';

/** A package that was packed, and unpacked again. */
export interface Packed {
  readonly name: string;
  /** The archive's path. */
  readonly file: string;
  /** Of the archive, in bytes. */
  readonly size: number;
  /** Paths inside the package. */
  readonly files: readonly string[];
  /** Where it was unpacked. */
  readonly folder: string;
}

/** Packs the kit, then the counters, into the folder. */
export async function packAll(folder: string): Promise<Packed[]> {
  const { stdout } = await run(['npm', 'pack', '.', './counters', '--json', '--pack-destination', folder], {
    cwd: ROOT,
  });
  // What a script of the package prints comes first.
  const all = JSON.parse(stdout.slice(stdout.search(/^\[/m))) as {
    name: string;
    filename: string;
    size: number;
    files: { path: string }[];
  }[];
  const packed = all.map(({ name, filename, size, files }) => ({
    ...{ name, size, file: join(folder, filename), folder: join(folder, 'unpacked', name) },
    files: files.map(({ path }) => path),
  }));
  for (const { file, folder: into } of packed) {
    mkdirSync(into, { recursive: true });
    await run(['tar', '-xzf', file, '--strip-components=1', '-C', into]);
    await run(['npm', 'publish', file, '--dry-run', '--loglevel=error'], { cwd: folder });
  }
  return packed;
}

/** What a stranger would stumble over; empty where nothing is wrong. */
export function problemsOf({ name, size, files, folder }: Packed): string[] {
  const has = new Set(files);
  const read = (path: string): string => readFileSync(join(folder, path), 'utf8');
  const wanted = ['LICENSE', 'README.md', ...binsOf(read('package.json'))];
  if (name === 'redis-to-keydb') wanted.push(LICENCES, ...(process.platform === 'linux' ? [MODULE] : []));
  const lost = (path: string, to: string): string[] =>
    has.has(join(dirname(path), to)) ? [] : [`${path} names ${to}, which is not packed`];
  const modules = files.filter((path) => /\.(c|m)?js$/.test(path));
  return [
    ...(size < MOST_BYTES ? [] : [`${size} bytes packed: fewer than ${MOST_BYTES} are allowed`]),
    ...wanted.filter((path) => !has.has(path)).map((path) => `${path} is not packed`),
    ...files.filter(isForUs).map((path) => `${path} is packed, and is of no use to others`),
    ...modules.filter(isStale).map((path) => `${path} is packed, and its source is gone: remove dist/`),
    ...modules.flatMap((path) => importsOf(read(path)).flatMap((to) => lost(path, to))),
    ...linksOf(read('README.md')).flatMap((to) => lost('README.md', to)),
  ];
}

const binsOf = (manifest: string): string[] =>
  Object.values((JSON.parse(manifest) as { bin?: Record<string, string> }).bin ?? {});

/** Tests, sources, and what only they need. */
const isForUs = (path: string): boolean =>
  /(^|\/)(test|terraform|node_modules)\/|\.(map|tf|c|h)$|tsconfig|\.tsbuildinfo$/.test(path) ||
  (/\.tsx?$/.test(path) && !path.endsWith('.d.ts'));

/** The kit's modules lie in dist/ as their sources do in the repository; the build removes what was bundled before. */
const isStale = (path: string): boolean =>
  /^dist\/(shadow-proxy\/src|loadtest|counters)\//.test(path) &&
  !['ts', 'tsx', 'js'].some((ending) => existsSync(join(ROOT, path.slice('dist/'.length).replace(/js$/, ending))));

/** Compiled code has no `import type`: that is in text which a program writes. */
const importsOf = (text: string): string[] =>
  [
    ...text.matchAll(
      /^(?:import|export)\b(?! type)[^'"]*['"](\.[^'"]+)['"];|(?:import|require)\(['"](\.[^'"]+)['"]\)/gm,
    ),
  ].map(([, from, called]) => from ?? called);

/** To files: not to other hosts, and not to a heading of the same page. */
const linksOf = (text: string): string[] => [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, to]) => to);
