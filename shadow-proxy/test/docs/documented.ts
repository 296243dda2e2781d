/** The commands that README.md and the pages in docs/ tell people to type. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));

/** A command of the kit. */
export interface Documented {
  /** `README.md:9`. */
  readonly where: string;
  /** As it stands there. */
  readonly text: string;
  readonly program: 'shadow-compare' | 'shadow-proxy' | 'npm run' | 'npm test';
  /** The script of `npm run`. */
  readonly script?: string;
  readonly args: readonly string[];
  /** To be typed as it is; false for one that a sentence mentions, which may leave arguments out. */
  readonly whole: boolean;
}

/** README.md, all of docs/, and the README of each folder. */
export function pages(): string[] {
  const folders = readdirSync(ROOT, { withFileTypes: true }).filter((entry) => entry.isDirectory() && !['node_modules', 'dist'].includes(entry.name));
  const readmes = folders.filter(({ name }) => readdirSync(join(ROOT, name)).includes('README.md')).map(({ name }) => `${name}/README.md`);
  return ['README.md', ...readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`), ...readmes];
}

export const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

const PROGRAM = 'shadow-proxy/src/cli/shadow-compare.ts';
const NAMES: ReadonlySet<string> = new Set([...textOf(PROGRAM).matchAll(/'\.\/([a-z]+)\.js'/g)].map(([, name]) => name));

/** In the order of the page. */
export function commandsIn(page: string): Documented[] {
  const found: Documented[] = [];
  let fence: string | null = null;
  textOf(page).replaceAll(/\\\n\s*/g, ' ').split('\n').forEach((line, i) => {
    const where = `${page}:${i + 1}`;
    const [, opens] = /^\s*```(\w*)/.exec(line) ?? [];
    if (opens !== undefined) fence = fence === null ? opens : null;
    else if (fence === null) found.push(...mentioned(line).map((text) => read(text, where, text.startsWith('npx '))!));
    else if (['', 'sh', 'console'].includes(fence)) found.push(...partsOf(line).flatMap((text) => read(text, where, true) ?? []));
  });
  return found;
}

/** `verify --repair` is one of shadow-compare, too. */
const mentioned = (line: string): string[] =>
  [...line.matchAll(/`([^`]+)`/g)]
    .map(([, code]) => (code.includes(' --') && NAMES.has(code.split(' ')[0]) ? `shadow-compare ${code}` : code))
    .filter((code) => read(code, '', false) !== null);

/** Commands of a line of a shell, without comment and redirection. */
const partsOf = (line: string): string[] =>
  line
    .replace(/(^|\s)#.*$/, '')
    .split(/&&|\|\||[;&|]/)
    .map((part) => part.replace(/\s>.*$/, '').trim())
    .filter((part) => part !== '');

function read(text: string, where: string, whole: boolean): Documented | null {
  const words = (text.replace(/^(\$ )?(sudo )?(npx )?/, '').match(/"[^"]*"|'[^']*'|\S+/g) ?? []).map((word) => word.replace(/^(["'])(.*)\1$/, '$2').replaceAll('…', 'x'));
  const [program, ...args] = words;
  if (program === 'shadow-compare' || program === 'shadow-proxy') return args.length === 0 ? null : { where, text, program, args, whole };
  if (program !== 'npm') return null;
  const [verb, ...others] = args.filter((word) => word !== '--silent' && word !== '--');
  if (verb === 'test') return { where, text, program: 'npm test', args: others, whole };
  return verb === 'run' ? { where, text, program: 'npm run', script: others[0], args: others.slice(1), whole } : null;
}
