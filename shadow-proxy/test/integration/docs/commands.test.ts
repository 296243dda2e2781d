/**
 * Every command in README.md, the docs and the runbooks exists, with the options and values that it is shown with.
 *
 * Needs real files: the pages, package.json, playbooks and programs of this repository.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { commandsIn, pages, ROOT, textOf, type Documented } from './documented.js';

/** Programs that take no options, and do not read their command line with commander. */
const BARE = ['counters:cost', 'dashboards', 'dashboards:metrics', 'datadog:schema', 'terraform:schema'];
/** pytest's, which takes its own. */
const PYTEST = ['test:ansible'];
/** What a sentence may leave out. */
const LEFT_OUT = [
  'commander.missingArgument',
  'commander.missingMandatoryOptionValue',
  'commander.optionMissingArgument',
];

/** Command lines of `shadow-compare`, and what commander says against them. */
const WRONG: readonly (readonly [line: readonly string[], code: string | null])[] = [
  [['verify', '--repiar'], 'commander.unknownOption'],
  [['verfy'], 'commander.unknownCommand'],
  [['completion', 'bush'], 'commander.invalidArgument'],
  [['promote'], 'commander.missingArgument'],
  [['guard', '--for', '10'], 'commander.invalidArgument'],
  [['status', 'now'], 'commander.excessArguments'],
  [['verify', '--repair'], null],
];
type Said = { readonly code: string; readonly message: string } | null;

interface Bootstrap {
  readonly PROGRAMS: Readonly<Record<string, readonly [script: string, ...first: string[]]>>;
  readonly testFiles: (parts: readonly string[]) => string[];
}
const { PROGRAMS, testFiles } = (await import(
  pathToFileURL(join(ROOT, 'shadow-proxy/bin/bootstrap.mjs')).href
)) as Bootstrap;
const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> };
const COMPARE = 'shadow-proxy/src/cli/shadow-compare.js';

describe('every command in the docs', () => {
  const all = pages().flatMap((page) => commandsIn(page));

  before(() => {
    const of = (page: string): number =>
      all.filter(({ where }) => where.startsWith(page.endsWith('/') ? page : `${page}:`)).length;
    assert.ok(
      of('README.md') > 3 &&
        of('docs/operations.md') > 20 &&
        of('docs/troubleshooting.md') > 20 &&
        of('docs/decisions/') > 8,
      'they were found',
    );
    assert.ok(
      of('runbooks/week-2-read-only.md') > 15 &&
        of('runbooks/upgrade-keydb.md') > 5 &&
        of('runbooks/MirrorBehind.md') > 2,
      'those of the runbooks, too',
    );
  });

  test('is one of npm that package.json has', () => {
    const runs = all.filter(({ program }) => program === 'npm run');
    assert.deepEqual(runs.filter(({ script }) => !(script! in scripts)).map(show), []);
    const bare = runs.filter(
      ({ script }) => BARE.includes(script!) || !(script! in PROGRAMS || PYTEST.includes(script!)),
    );
    assert.deepEqual(
      bare.filter(({ args }) => args.some((arg) => arg.startsWith('-'))).map(show),
      [],
      'these take no options',
    );
    assert.deepEqual(
      all
        .filter(({ program, args }) => program === 'npm test' && args.some((part) => testFiles([part]).length === 0))
        .map(show),
      [],
      'each names tests',
    );
  });

  test('is on a playbook with variables that it reads, or in a folder that there is', () => {
    const known = filesBelow('ansible')
      .filter((file) => /\.(yml|j2)$/.test(file))
      .map(textOf)
      .join('\n')
      .replace(/^\s*#.*$/gm, '');
    const wrong = all.flatMap(({ program, args, ...line }) => {
      const problem =
        program === 'ansible-playbook'
          ? problemOfPlaybook(args, known)
          : program === 'terraform'
            ? problemOfTerraform(args)
            : null;
      return problem === null ? [] : [`${line.where} ${line.text}: ${problem}`];
    });
    assert.deepEqual(wrong, []);
    assert.ok(
      all.filter(({ program }) => program === 'ansible-playbook').length > 5 &&
        all.filter(({ program }) => program === 'terraform').length > 4,
    );
    assert.match(problemOfPlaybook(['-i', 'x', 'playbooks/sight.yml'], known) ?? '', /no playbooks\/sight.yml/);
    assert.match(
      problemOfPlaybook(['playbooks/upgrade.yml', '-e', 'upgrade_now=true'], known) ?? '',
      /reads upgrade_now/,
    );
    assert.match(problemOfPlaybook(['playbooks/upgrade.yml', '--chek'], known) ?? '', /--chek/);
    assert.match(problemOfTerraform(['-chdir=terraform/nowhere', 'plan']) ?? '', /nowhere/);
  });

  /** By the program's file: the documented command lines that run it. */
  const asked = new Map<string, { readonly documented: Documented; readonly line: readonly string[] }[]>();
  for (const documented of all) {
    const [file, ...first] = fileOf(documented);
    if (file !== undefined)
      asked.set(file, [...(asked.get(file) ?? []), { documented, line: [...first, ...documented.args] }]);
  }

  let said: Readonly<Record<string, Said[]>> = {};
  before(async () => {
    const lines = new Map([...asked].map(([file, documented]) => [file, documented.map(({ line }) => line)]));
    said = await judged(
      new Map([...lines, [COMPARE, [...(lines.get(COMPARE) ?? []), ...WRONG.map(([line]) => line)]]]),
    );
  });

  for (const [file, lines] of asked) {
    test(`is understood by ${file}`, () => {
      assert.equal(said[file].length, lines.length + (file === COMPARE ? WRONG.length : 0));
      const wrong = lines.flatMap(({ documented }, i) => {
        const each = said[file][i];
        return each === null || (!documented.whole && LEFT_OUT.includes(each.code))
          ? []
          : [`${show(documented)}: ${each.message}`];
      });
      assert.deepEqual(wrong, []);
    });
  }

  test('would be found out if it were wrong', () => {
    assert.deepEqual(
      said[COMPARE].slice(-WRONG.length).map((each) => each?.code ?? null),
      WRONG.map(([, code]) => code),
    );
  });
});

const ANSIBLE_OPTIONS = ['-i', '-e', '--check'];

/** @param known the text of all that reads variables */
function problemOfPlaybook(args: readonly string[], known: string): string | null {
  const playbook = args.find((word) => word.endsWith('.yml') && !word.startsWith('@'));
  if (playbook === undefined || ![playbook, `ansible/${playbook}`].some((file) => existsSync(join(ROOT, file))))
    return `there is no ${playbook}`;
  const option = args.find((word) => word.startsWith('-') && !ANSIBLE_OPTIONS.includes(word));
  if (option !== undefined) return `${option} is not one of those that are known here: ${ANSIBLE_OPTIONS.join(', ')}`;
  const variable = args
    .flatMap((word) => /^(\w+)=/.exec(word)?.[1] ?? [])
    .find((name) => !new RegExp(`\\b${name}\\b`).test(known));
  return variable === undefined ? null : `nothing reads ${variable}`;
}

function problemOfTerraform(args: readonly string[]): string | null {
  const folder = args.find((word) => word.startsWith('-chdir='))?.slice('-chdir='.length);
  return folder === undefined || existsSync(join(ROOT, folder)) ? null : `there is no ${folder}`;
}

const filesBelow = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`);

const show = ({ where, text }: Documented): string => `${where} ${text}`;

/** The compiled file, and the arguments that come before those of the command. */
function fileOf({ program, script }: Documented): readonly string[] {
  if (program === 'shadow-compare') return [COMPARE];
  if (program === 'shadow-proxy') return ['shadow-proxy/src/main.js'];
  return script !== undefined && !BARE.includes(script) ? (PROGRAMS[script] ?? []) : [];
}

/** What commander says against each of the command lines of these programs, by the program's file. */
async function judged(lines: ReadonlyMap<string, readonly (readonly string[])[]>): Promise<Record<string, Said[]>> {
  const program = fileURLToPath(new URL('parse-only.js', import.meta.url));
  const files = [...lines.keys()];
  const byPath = Object.fromEntries(files.map((file) => [join(ROOT, 'dist', file), lines.get(file)]));
  const { stdout } = await promisify(execFile)(process.execPath, [program], {
    env: { ...process.env, COMMAND_LINES: JSON.stringify(byPath) },
    timeout: 60_000,
  });
  const said = JSON.parse(stdout) as Record<string, Said[]>;
  return Object.fromEntries(files.map((file) => [file, said[join(ROOT, 'dist', file)]]));
}
