/** The commands that README.md, the pages in docs/ and the runbooks tell people to type. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { operatorProgram } from '../../../src/cli/program.js';

export const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url));

/** A command of the kit, or one of Ansible or Terraform on it. */
export interface Documented {
  /** `README.md:9`. */
  readonly where: string;
  /** As it stands there. */
  readonly text: string;
  readonly program: 'shadow-compare' | 'shadow-proxy' | 'npm run' | 'npm test' | 'ansible-playbook' | 'terraform';
  /** The script of `npm run`. */
  readonly script?: string;
  readonly args: readonly string[];
  /** To be typed as it is; false for one that a sentence mentions, which may leave arguments out. */
  readonly whole: boolean;
}

/** The pages at the root, all of docs/, its decisions/ and runbooks/, and the README of each folder. */
export function pages(): string[] {
  const folders = readdirSync(ROOT, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && !['node_modules', 'dist'].includes(entry.name),
  );
  const pagesIn = (folder: string, wanted: (name: string) => boolean): string[] =>
    readdirSync(join(ROOT, folder))
      .filter(wanted)
      .map((name) => `${folder}/${name}`);
  const whole = ['docs', 'docs/decisions', 'runbooks'].flatMap((folder) =>
    pagesIn(folder, (name) => name.endsWith('.md')),
  );
  return [
    ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
    ...whole,
    ...folders
      .filter(({ name }) => !['docs', 'runbooks'].includes(name))
      .flatMap(({ name }) => pagesIn(name, (file) => file === 'README.md')),
  ];
}

export const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

const PROGRAMS: ReadonlySet<string> = new Set(['shadow-compare', 'shadow-proxy', 'ansible-playbook', 'terraform']);
const NAMES: ReadonlySet<string> = new Set((await operatorProgram()).commands.map((command) => command.name()));

/** In the order of the page. */
export function commandsIn(page: string): Documented[] {
  const found: Documented[] = [];
  let fence: string | null = null;
  textOf(page)
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .forEach((line, i) => {
      const where = `${page}:${i + 1}`;
      const [, opens] = /^\s*```(\w*( step)?)/.exec(line) ?? [];
      if (opens !== undefined) fence = fence === null ? opens : null;
      else if (fence === null)
        found.push(...mentioned(line).map((text) => read(text, where, text.startsWith('npx '))!));
      // A console shows what the commands print, too.
      else if (['', 'sh'].includes(fence) || (fence === 'console' && line.startsWith('$ ')))
        found.push(...partsOf(line).flatMap((text) => read(text, where, true) ?? []));
      else if (fence === 'yaml step')
        found.push(
          ...partsOf(/^(?:run|undo): (.*)/.exec(line)?.[1] ?? '').flatMap((text) => read(text, where, true) ?? []),
        );
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
  const words = (text.replace(/^(\$ )?(sudo )?(npx --no-install )?/, '').match(/"[^"]*"|'[^']*'|\S+/g) ?? []).map(
    (word) => word.replace(/^(["'])(.*)\1$/, '$2').replaceAll('…', 'x'),
  );
  const [program, ...args] = words;
  if (PROGRAMS.has(program))
    return args.length === 0 ? null : { where, text, program: program as Documented['program'], args, whole };
  if (program !== 'npm') return null;
  const [verb, ...others] = args.filter((word) => word !== '--silent' && word !== '--');
  if (verb === 'test') return { where, text, program: 'npm test', args: others, whole };
  return verb === 'run' ? { where, text, program: 'npm run', script: others[0], args: others.slice(1), whole } : null;
}
