/** Every command in README.md and the docs exists, with the options and values that it is shown with. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { commandsIn, pages, ROOT, textOf, type Documented } from './documented.js';

/** Programs that take no options, and do not read their command line with commander. */
const BARE = ['counters:cost', 'dashboards', 'dashboards:metrics', 'terraform:schema'];
/** What a sentence may leave out. */
const LEFT_OUT = ['commander.missingArgument', 'commander.missingMandatoryOptionValue'];

interface Bootstrap {
  readonly PROGRAMS: Readonly<Record<string, readonly [script: string, ...first: string[]]>>;
  readonly testFiles: (parts: readonly string[]) => string[];
}
const { PROGRAMS, testFiles } = (await import(pathToFileURL(join(ROOT, 'shadow-proxy/bin/bootstrap.mjs')).href)) as Bootstrap;
const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> };
const COMPARE = 'shadow-proxy/src/cli/shadow-compare.js';

describe('every command in the docs', () => {
  const all = pages().flatMap((page) => commandsIn(page));

  before(() => {
    const of = (page: string): number => all.filter(({ where }) => where.startsWith(`${page}:`)).length;
    assert.ok(of('README.md') > 30 && of('docs/handbook.md') > 20 && of('docs/architecture.md') > 8, 'they were found');
  });

  test('is one of npm that package.json has', () => {
    const runs = all.filter(({ program }) => program === 'npm run');
    assert.deepEqual(runs.filter(({ script }) => !(script! in scripts)).map(show), []);
    const bare = runs.filter(({ script }) => BARE.includes(script!) || !(script! in PROGRAMS));
    assert.deepEqual(bare.filter(({ args }) => args.some((arg) => arg.startsWith('-'))).map(show), [], 'these take no options');
    assert.deepEqual(all.filter(({ program, args }) => program === 'npm test' && args.some((part) => testFiles([part]).length === 0)).map(show), [], 'each names tests');
  });

  /** By the program's file: what it is asked to do, wherever that is told. */
  const asked = new Map<string, { readonly told: Documented; readonly line: readonly string[] }[]>();
  for (const told of all) {
    const [file, ...first] = fileOf(told);
    if (file !== undefined) asked.set(file, [...(asked.get(file) ?? []), { told, line: [...first, ...told.args] }]);
  }

  for (const [file, lines] of asked) {
    test(`is understood by ${file}`, async () => {
      const said = await judged(file, lines.map(({ line }) => line));
      assert.equal(said.length, lines.length);
      const wrong = lines.flatMap(({ told }, i) => (said[i] === null || (!told.whole && LEFT_OUT.includes(said[i].code)) ? [] : [`${show(told)}: ${said[i].message}`]));
      assert.deepEqual(wrong, []);
    });
  }

  test('would be found out if it were wrong', async () => {
    const codes = (await judged(COMPARE, [['verify', '--repiar'], ['verfy'], ['stage', 'sessions', 'lives'], ['promote'], ['guard', '--for', '10'], ['status', 'now'], ['verify', '--repair']])).map((each) => each?.code ?? null);
    assert.deepEqual(codes, ['commander.unknownOption', 'commander.unknownCommand', 'commander.invalidArgument', 'commander.missingArgument', 'commander.invalidArgument', 'commander.excessArguments', null]);
  });
});

const show = ({ where, text }: Documented): string => `${where} ${text}`;

/** The compiled file, and the arguments that come before those of the command. */
function fileOf({ program, script }: Documented): readonly string[] {
  if (program === 'shadow-compare') return [COMPARE];
  if (program === 'shadow-proxy') return ['shadow-proxy/src/main.js'];
  return script !== undefined && !BARE.includes(script) ? (PROGRAMS[script] ?? []) : [];
}

async function judged(file: string, lines: readonly (readonly string[])[]): Promise<({ readonly code: string; readonly message: string } | null)[]> {
  const preload = fileURLToPath(new URL('parse-only.js', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', preload, join(ROOT, 'dist', file)], { env: { ...process.env, COMMAND_LINES: JSON.stringify(lines) }, timeout: 60_000 });
  return JSON.parse(stdout) as ({ code: string; message: string } | null)[];
}
