/**
 * Every step of every week, then the ways back, against the local environment under traffic: commands, expectations,
 * and what the pages show. Takes as long as its gates ask for: some 20 minutes.
 *
 * `RUNBOOKS_WRITE=1 npm test runbook/pages` writes what was printed into the pages: look at the difference before you
 * commit it.
 *
 * Needs real processes: each step of the runbooks, run as it stands there.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Running } from '../../../src/cli/local/folder.js';
import { openRunbook, SHELF } from '../../../src/runbook/shelf.js';
import { Program } from '../cli/process.js';
import { shows } from './sample.js';
import { toolOf, stopsOf, type Tool } from './stops.js';

const WEEKS = [
  'week-0-decide-and-build',
  'week-1-shadow',
  'week-2-read-only',
  'week-3-read-write',
  'week-4-critical-path-and-retire',
];
const WRITES = process.env.RUNBOOKS_WRITE === '1';

test('every step of every week, and the ways back, do what their pages say', { timeout: 3_600_000 }, async (t) => {
  const { tool, plan, directory } = await practise(t);
  for (const name of WEEKS.slice(0, 3)) await runPage(t, tool, name, plan, directory);
  // The ways back, while there is one.
  await runPage(t, tool, 'rollback', plan, directory, ['--workload', 'sessions']);
  assert.equal((await tool('runbook', 'rollback', '--workload', 'sessions', '--check', '--plan', plan)).code, 0);
  await again(tool, plan, 'live', ['sessions']);
  for (const name of [WEEKS[3], 'active-active-counters', 'upgrade-keydb', WEEKS[4]])
    await runPage(t, tool, name, plan, directory);
  // A page that does not hold is found: everything is complete by now.
  const check = await tool('runbook', 'week-2', '--check', '--json', '--plan', plan);
  assert.equal(check.code, 1, check.stdout);
  const { stdout: history } = await tool('history', '--plan', plan);
  for (const name of WEEKS.slice(1)) assert.match(history, new RegExp(`runbook ${name}: \\S+ run, by `), name);
});

test('the emergency rollback, and the way out, from live', { timeout: 1_800_000 }, async (t) => {
  const { tool, plan, directory } = await practise(t);
  for (const stage of ['dualwrite', 'shadow', 'live']) await again(tool, plan, stage, ['sessions', 'rate-limits']);
  for (const name of ['emergency-rollback', 'abort-the-migration']) await runPage(t, tool, name, plan, directory);
});

/** `shadow-compare local up`, and clients at work until the test ends. */
async function practise(t: TestContext): Promise<{ tool: Tool; plan: string; directory: string }> {
  const home = mkdtempSync(join(tmpdir(), 'runbook-walk-'));
  const directory = join(home, 'local');
  const tool = toolOf(t);
  const { code, stdout, stderr } = await tool('local', 'up', '--directory', directory, '--json');
  assert.equal(code, 0, stderr);
  const clients = new Program(t, 'shadow-compare', [
    'local',
    'traffic',
    '--for',
    '2h',
    '--rate',
    '1000',
    '--directory',
    directory,
  ]);
  t.after(async () => {
    clients.signal('SIGKILL');
    await tool('local', 'down', '--directory', directory);
    rmSync(home, { recursive: true, force: true });
  });
  return { tool, plan: (JSON.parse(stdout) as Running).plan, directory };
}

/** Past every gate: what this is about is not how one gets there. */
async function again(tool: Tool, plan: string, stage: string, workloads: readonly string[]): Promise<void> {
  for (const workload of workloads) {
    const percent = stage === 'live' ? ['--percent', '100'] : [];
    if (stage === 'shadow') assert.equal((await tool('backfill', '--workload', workload, '--plan', plan)).code, 0);
    const { code, stderr, stdout } = await tool(
      'promote',
      workload,
      '--to',
      stage,
      ...percent,
      '--force',
      '--reason',
      'the test goes on',
      '--plan',
      plan,
    );
    assert.equal(code, 0, stderr + stdout);
  }
}

/**
 * Step after step as an operator does: a closed gate is asked again later, anything else that does not hold is a
 * failure.
 */
async function runPage(
  t: TestContext,
  tool: Tool,
  name: string,
  plan: string,
  directory: string,
  more: readonly string[] = [],
): Promise<void> {
  const page = openRunbook(name);
  const shown = new Set<string>();
  const began = performance.now();
  const problems: string[] = [];
  for await (const stop of stopsOf(tool, name, '--plan', plan, ...more)) {
    const id = stop.stop.split(':')[0];
    if (shown.has(id)) continue;
    shown.add(id);
    const printed = stop.printed
      .trimEnd()
      .replaceAll(plan, '$PLAN')
      .replaceAll(directory, '$DIRECTORY')
      .replaceAll(`by ${userInfo().username}`, 'by $USER');
    const { sample, run } = page.steps.find((step) => step.id === id)!;
    if (/--json|--format/.test(run)) continue;
    if (WRITES && !sample?.includes('…\n')) write(name, id, printed);
    else if (!shows(sample ?? '', printed))
      problems.push(`${name} ${id} does not show what it prints:\n${printed}\n--- the page:\n${sample}`);
  }
  t.diagnostic(`${name}: ${Math.round((performance.now() - began) / 1000)} s`);
  // A sample with `…` is shortened by hand.
  if (WRITES) for (const problem of problems) t.diagnostic(problem);
  else assert.deepEqual(problems, []);
  assert.deepEqual([...shown].sort(), page.steps.map(({ id }) => id).sort(), `${name}: every step was walked`);
}

/** Puts the sample behind its step, in the place of the one that is there. */
function write(name: string, id: string, printed: string): void {
  const file = join(SHELF, `${name}.md`);
  const page = readFileSync(file, 'utf8');
  const { line, sample } = openRunbook(name).steps.find((step) => step.id === id)!;
  const lines = page.split('\n');
  const end = lines.indexOf('```', line);
  const old = sample === null ? 0 : lines.indexOf('```', end + 1) - end;
  lines.splice(end + 1, old, '', '```text output', ...printed.split('\n'), '```');
  writeFileSync(file, lines.join('\n'));
}
