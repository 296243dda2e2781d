/** Every command in README.md, the docs and the runbooks exists, with the options and values that it is shown with. */
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
const LEFT_OUT = ['commander.missingArgument', 'commander.missingMandatoryOptionValue'];

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

  for (const [file, lines] of asked) {
    test(`is understood by ${file}`, async () => {
      const said = await judged(
        file,
        lines.map(({ line }) => line),
      );
      assert.equal(said.length, lines.length);
      const wrong = lines.flatMap(({ documented }, i) =>
        said[i] === null || (!documented.whole && LEFT_OUT.includes(said[i].code))
          ? []
          : [`${show(documented)}: ${said[i].message}`],
      );
      assert.deepEqual(wrong, []);
    });
  }

  test('would be found out if it were wrong', async () => {
    const codes = (
      await judged(COMPARE, [
        ['verify', '--repiar'],
        ['verfy'],
        ['completion', 'bush'],
        ['promote'],
        ['guard', '--for', '10'],
        ['status', 'now'],
        ['verify', '--repair'],
      ])
    ).map((each) => each?.code ?? null);
    assert.deepEqual(codes, [
      'commander.unknownOption',
      'commander.unknownCommand',
      'commander.invalidArgument',
      'commander.missingArgument',
      'commander.invalidArgument',
      'commander.excessArguments',
      null,
    ]);
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

async function judged(
  file: string,
  lines: readonly (readonly string[])[],
): Promise<({ readonly code: string; readonly message: string } | null)[]> {
  const preload = fileURLToPath(new URL('parse-only.js', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', preload, join(ROOT, 'dist', file)], {
    env: { ...process.env, COMMAND_LINES: JSON.stringify(lines) },
    timeout: 60_000,
  });
  return JSON.parse(stdout) as ({ code: string; message: string } | null)[];
}
