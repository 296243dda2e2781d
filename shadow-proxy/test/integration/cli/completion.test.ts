/**
 * The scripts of `completion`, in real shells.
 *
 * Needs real processes: bash, zsh and fish read the scripts of completion, and bash completes with them.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { describe, test, type TestContext } from 'node:test';
import { workloadsFor } from '../../../src/cli/complete.js';
import { runbookNames } from '../../../src/runbook/shelf.js';
import { STAGES } from '../../../src/route/stage.js';
import { scratch } from '../../support/plans.js';
import { patienceMs } from '../../support/patience.js';
import { PROGRAMS } from '../../support/programs.js';
import { runCommand, runProgram } from './process.js';
import { needs } from '../../support/needs.js';

const scriptFor = async (t: TestContext, shell: string): Promise<string> => {
  const { code, stdout, stderr } = await runProgram(t, 'shadow-compare', ['completion', shell]);
  assert.equal(code, 0, stderr);
  const file = join(scratch(t), `completion.${shell}`);
  writeFileSync(file, stdout);
  return file;
};

/** What bash offers behind these words, by the function that the script registers. */
function offered(file: string, words: readonly string[], cwd?: string): string[] {
  const script = `
    source "$1"; shift
    shadow-compare() { "$NODE" "$PROGRAM" "$@"; }
    [[ $(complete -p shadow-compare) =~ -F\\ ([a-z_]+) ]] || exit 9
    COMP_WORDS=(shadow-compare "$@"); COMP_CWORD=$#
    "\${BASH_REMATCH[1]}"
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-uc', script, 'bash', file, ...words], {
    encoding: 'utf8',
    cwd,
    env: { ...process.env, NODE: process.execPath, PROGRAM: PROGRAMS['shadow-compare'] },
  });
  assert.deepEqual([status, stderr], [0, ''], words.join(' '));
  return stdout.split('\n').filter((word) => word !== '');
}

test('bash completes commands, options, and the values that they allow', async (t) => {
  const file = await scriptFor(t, 'bash');
  const cases: [words: string[], expected: readonly string[]][] = [
    [['pro'], ['promote']],
    [['r'], ['run', 'resume', 'rollback', 'report', 'runbook']],
    [
      ['local', ''],
      ['up', 'down', 'traffic', '--help'],
    ],
    [['local', 'up', '--re'], ['--redis-port']],
    [
      ['promote', 'sessions', '--p'],
      ['--percent', '--point-of-no-return', '--plan'],
    ],
    [['promote', 'sessions', '--to', ''], STAGES],
    [['promote', 'sessions', '--to', 'l'], ['live']],
    [
      ['promote', 'local', '--force'],
      ['--force', '--force-suspects', '--force-users'],
    ],
    [['rollback', 'sessions', '--to', 'sh'], ['shadow']],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish', '--help'],
    ],
    // The name of a file, which bash completes by itself.
    [['status', '--plan', ''], []],
    [['--v'], ['--version']],
  ];
  for (const [words, expected] of cases) assert.deepEqual(offered(file, words), [...expected], words.join(' '));
  assert.ok(!offered(file, ['local', '']).includes('serve'), 'a hidden command is not offered');
});

const PLAN = 'version: 1\nname: shop\nworkloads:\n  - name: sessions\n  - name: search\n  - name: carts\n';

test('bash completes workloads from the plan, and pages from the list of runbooks', async (t) => {
  const file = await scriptFor(t, 'bash');
  const [there, otherFolder] = [scratch(t, { 'migration.yaml': PLAN }), scratch(t, { 'other.yaml': PLAN })];
  assert.deepEqual(offered(file, ['promote', 'se'], there), ['sessions', 'search']);
  assert.deepEqual(offered(file, ['rollback', 'c'], there), ['carts']);
  assert.deepEqual(offered(file, ['backfill', '--workload', ''], there), ['sessions', 'search', 'carts', 'default']);
  const other = join(otherFolder, 'other.yaml');
  assert.deepEqual(offered(file, ['promote', '--plan', other, 'se'], scratch(t)), ['sessions', 'search']);
  assert.deepEqual(
    offered(file, ['runbook', 'week-1'], otherFolder),
    runbookNames().filter((name) => name.startsWith('week-1')),
  );
});

test('the workloads of a proxy complete where it answers at once, else nothing does, and no error shows', async (t) => {
  const file = await scriptFor(t, 'bash');
  const shards = [{ name: 'a', workloads: [{ name: 'sessions' }, { name: 'default' }] }];
  let delayMs = 0;
  const server = createServer((_request, response) => {
    setTimeout(() => response.end(JSON.stringify({ shards })), delayMs);
  });
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const admin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const complete = (at: string): Promise<{ code: number | null; stdout: string; stderr: string }> =>
    runCommand('complete', 'workloads', '--', 'promote', '--admin', at, '');
  // What is at once for a person depends on the machine.
  assert.deepEqual(await workloadsFor(['promote', '--admin', admin, ''], patienceMs(5_000)), ['sessions', 'default']);
  delayMs = 2_000;
  assert.deepEqual(await complete(admin), { code: 0, stdout: '', stderr: '' });
  assert.deepEqual(await complete('http://127.0.0.1:1'), { code: 0, stdout: '', stderr: '' });
  assert.deepEqual(offered(file, ['promote', '--admin', 'http://127.0.0.1:1', 's'], scratch(t)), []);
});

test('bash itself completes a word that is typed, and names of files', async (t) => {
  if (!(await needs(t, 'script', 'bash'))) return;
  const file = await scriptFor(t, 'bash');
  const directory = scratch(t, { 'plan-of-mine.yaml': '' });
  // On a terminal of its own: readline completes on Tab, and Enter runs what it has completed.
  const typed = `shadow-compare() { printf 'ran: %s\\n' "$*"; }; source ${file}\nshadow-compare prom\tsessions --to ramp\t--plan plan-of\t\nexit\n`;
  const { stdout } = spawnSync('script', ['-qec', 'bash --norc --noprofile -i', '/dev/null'], {
    encoding: 'utf8',
    input: typed,
    cwd: directory,
    env: { PATH: process.env.PATH, TERM: 'dumb', PS1: '$ ' },
    timeout: 10_000,
  });
  assert.match(stdout, /^ran: promote sessions --to rampdown --plan plan-of-mine\.yaml\s*$/m);
});

describe('the script is one that the shell reads:', () => {
  for (const shell of ['zsh', 'fish'] as const)
    test(shell, async (t) => {
      const file = await scriptFor(t, shell);
      if (!(await needs(t, shell))) return;
      const { status, stderr } = spawnSync(shell, ['-n', file], { encoding: 'utf8' });
      assert.deepEqual([status, stderr], [0, '']);
    });
});

test('a shell that is not known is refused with those that are', async (t) => {
  const { code, stderr } = await runProgram(t, 'shadow-compare', ['completion', 'powershell']);
  assert.equal(code, 2);
  assert.match(stderr, /Allowed choices are bash, zsh, fish/);
});
