/**
 * `shadow-compare runbook`: keeps its place, asks before it changes anything, and writes into the history.
 *
 * Needs real processes: a runbook's commands, confirmations and saved place, in the real program.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { operatorProgram } from '../../../src/cli/program.js';
import { loadPlan } from '../../../src/plan/load.js';
import { layOut, type Stop } from '../../../src/runbook/place.js';
import { openRunbook, shelved } from '../../../src/runbook/shelf.js';
import { scratch } from '../../support/plans.js';
import { withServers } from '../../support/servers.js';
import { ROOT } from '../docs/documented.js';
import { runProgram } from './process.js';
import { planFor, start } from './running.js';
import { needs } from '../../support/needs.js';

const PAGE = `# Try it

\`\`\`yaml step
id: look
each: all
run: echo "$WORKLOAD by $(basename "$PLAN")"
expect: { output: "^$WORKLOAD by plan.yaml$" }
\`\`\`

\`\`\`yaml step
id: make
run: touch "$(dirname "$PLAN")/made"
expect: {}
changes: a file is there
undo: rm "$(dirname "$PLAN")/made"
\`\`\`

\`\`\`yaml step
id: end
run: test ! -e "$(dirname "$PLAN")/broken"
expect: {}
\`\`\`
`;

test('running a runbook: place, confirmation, undo, check, history; with the proxy and without', async (t) => {
  await withServers(async ({ source, target }) => {
    const running = await start(t, await planFor({ source, target }));
    const page = join(running.directory, 'try.md');
    writeFileSync(page, PAGE);
    const made = (): boolean => existsSync(join(running.directory, 'made'));
    const runbook = (...args: string[]): ReturnType<typeof runProgram> =>
      runProgram(t, 'shadow-compare', ['runbook', page, '--plan', running.file, ...args]);
    const next = async (): Promise<string | null> =>
      (JSON.parse((await runbook('--json')).stdout) as { next: string | null }).next;

    const first = await runbook('--next');
    assert.deepEqual([first.code, first.stderr], [0, '']);
    assert.match(first.stdout, /look:sessions\n {2}echo[^\n]*\nsessions by plan.yaml\n✓ look:sessions; next: make/);
    assert.match(
      readFileSync(join(running.directory, 'runbooks.jsonl'), 'utf8'),
      /"stop":"look:sessions"/,
      'beside the state directory of the plan',
    );

    const refused = await runbook('--next');
    assert.deepEqual([refused.code, made()], [2, false]);
    assert.match(
      refused.stderr,
      /make makes a change: a file is there\. No terminal to ask on: make was not run\. Confirm with --yes/,
    );
    const done = await runbook('--next', '--yes', '--json');
    assert.deepEqual([done.code, made()], [0, true], done.stderr);
    const { held, by } = JSON.parse(done.stdout) as { held: boolean; by: string };
    assert.ok(held && by !== '');

    writeFileSync(join(running.directory, 'broken'), '');
    const failed = await runbook('--next');
    assert.equal(failed.code, 1);
    assert.match(failed.stdout, /✗ end: exit code 1, expected 0/);

    assert.equal((await runbook('--undo', 'make', '--yes')).code, 0);
    assert.deepEqual([made(), await next()], [false, 'make']);

    const { stdout: history } = await runProgram(t, 'shadow-compare', ['history', '--admin', running.admin]);
    assert.match(history, /runbook try: make run, by \S+\n.*runbook try: make undone, by/);
    assert.doesNotMatch(history, /try: (look|end)/, 'what changes nothing is in runbooks.jsonl only');
    const foreign = await fetch(`${running.admin}/api/note`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: 'http://elsewhere.example' },
      body: '{}',
    });
    assert.equal(foreign.status, 403, 'a web page may not write into the history');

    running.daemon.signal('SIGTERM');
    await running.daemon.exit();
    const alone = await runbook('--step', 'make', '--yes');
    assert.deepEqual([alone.code, made()], [0, true]);
    assert.match(
      alone.stderr,
      /Recorded in .*runbooks\.jsonl only, not in the history of the migration: no proxy answers/,
    );

    assert.match((await runbook('--check')).stdout, /1 of 1 read-only step holds\./, 'as far as the walk has come');
    assert.equal((await runbook('--again')).code, 0);
    assert.equal(await next(), 'look:sessions');
  });
});

test('wrong use is named', async (t) => {
  const directory = scratch(t);
  const plan = join(directory, 'plan.yaml');
  writeFileSync(
    plan,
    'version: 1\nname: test\nshards: [{ name: a, listen: "redis://127.0.0.1:6400", source: "redis://127.0.0.1:1", target: "redis://127.0.0.1:2" }]\nworkloads: [{ name: sessions, keys: ["s:*"] }]\n',
  );
  const [page, broken] = [join(directory, 'try.md'), join(directory, 'broken.md')];
  writeFileSync(page, PAGE);
  writeFileSync(broken, PAGE.replace('undo: ', 'undoes: '));
  const cases: readonly (readonly [args: readonly string[], said: RegExp])[] = [
    [['week-1', '--plan', join(directory, 'none.yaml')], /none\.yaml: cannot be read/],
    [['week-9', '--plan', plan], /week-9 is not a runbook\. The command `runbook` alone lists them/],
    [['week', '--plan', plan], /is ambiguous/],
    [
      ['week-1', '--plan', plan, '--workload', 'session'],
      /--workload session: the plan has no such workload \(did you mean sessions\?\)\. Its workloads: sessions/,
    ],
    [
      ['week-1', '--plan', plan, '--step', 'dual'],
      /dual is not a step of week-1-shadow\.md \(did you mean dualwrite\?\)\. Allowed: .*dualwrite:sessions/,
    ],
    [
      ['week-1', '--plan', plan, '--until', 'dual'],
      /--until dual is not a step of week-1-shadow\.md \(did you mean dualwrite\?\)\. Allowed: dualwrite-gates, dualwrite, backfill, .*such as dualwrite-gates:sessions/,
    ],
    [['week-1', '--plan', plan, '--until', 'verify', '--all'], /--until and --all: give one of them/],
    [['week-1', '--plan', plan, '--next', '--check'], /--next and --check: give one of them/],
    [['rollback', '--plan', plan], /needs the workloads by name: add --workload sessions/],
    [['week-4', '--plan', plan, '--undo', 'complete', '--yes'], /cannot be undone: .*leave-keydb\.md/],
    [[page, '--plan', plan, '--undo', 'look'], /look:sessions is read-only: there is nothing to undo/],
    [[broken, '--plan', plan], /broken\.md:10: .*undoes/],
    [[page, '--plan', plan, '--log', directory], /cannot be read \(EISDIR\)/],
  ];
  for (const [args, said] of cases) {
    const program = (await operatorProgram()).configureOutput({ writeErr: () => undefined });
    await assert.rejects(
      program.parseAsync(['node', 'shadow-compare', 'runbook', ...args]),
      (error: Error) => said.test(error.message),
      args.join(' '),
    );
  }
});

const LONG = `# Long

\`\`\`yaml step
id: look
each: all
run: echo "looked at $WORKLOAD"
expect: {}
\`\`\`

\`\`\`yaml step
id: make
each: all
run: touch "$(dirname "$PLAN")/made-$WORKLOAD"
expect: {}
changes: a file for each workload
undo: rm "$(dirname "$PLAN")/made-$WORKLOAD"
\`\`\`

\`\`\`yaml step
id: check
run: test ! -e "$(dirname "$PLAN")/broken"
expect: {}
\`\`\`

\`\`\`yaml step
id: finish
run: touch "$(dirname "$PLAN")/finished"
expect: {}
changes: the end
undo: rm "$(dirname "$PLAN")/finished"
\`\`\`
`;

test('--until and --all run several steps, ask once for each change, and end where a step fails', async (t) => {
  const directory = scratch(t);
  const plan = join(directory, 'plan.yaml');
  writeFileSync(
    plan,
    'version: 1\nname: test\nadmin: { listen: "127.0.0.1:1" }\nshards: [{ name: a, listen: "redis://127.0.0.1:6400", source: "redis://127.0.0.1:1", target: "redis://127.0.0.1:2" }]\nworkloads: [{ name: s, keys: ["s:*"] }, { name: u, keys: ["u:*"] }]\n',
  );
  const page = join(directory, 'long.md');
  writeFileSync(page, LONG);
  const has = (file: string): boolean => existsSync(join(directory, file));
  const runbook = (...args: string[]): ReturnType<typeof runProgram> =>
    runProgram(t, 'shadow-compare', ['runbook', page, '--plan', plan, ...args]);

  const looked = await runbook('--until', 'look');
  assert.equal(looked.code, 0, looked.stderr);
  assert.match(looked.stdout, /looked at s\n✓ look:s; next: look:u\n[^]*looked at u\n✓ look:u; next: make:s\n$/);
  assert.match((await runbook('--until', 'look')).stdout, /^look:u is done already: nothing was run\.\n$/);

  const refused = await runbook('--all');
  assert.deepEqual([refused.code, has('made-s')], [2, false]);
  assert.match(
    refused.stdout,
    /make, a change: a file for each workload\nFor s, u:\n {2}touch .*made-s"\n {2}touch .*made-u"\nUndo: --undo make:NAME/,
  );
  assert.match(
    refused.stderr,
    /make makes a change: a file for each workload\. No terminal to ask on: make was not run/,
  );

  // On a terminal: one question for both workloads, none for the step that only reads, one for the last change.
  const quoted = [
    process.execPath,
    join(ROOT, 'dist/shadow-proxy/src/cli/shadow-compare.js'),
    'runbook',
    page,
    '--plan',
    plan,
  ]
    .map((word) => `'${word}'`)
    .join(' ');
  const asked = (option: string, answers: string): string =>
    spawnSync('script', ['-qec', `${quoted} ${option}`, '/dev/null'], {
      encoding: 'utf8',
      input: answers,
      timeout: 20_000,
    }).stdout;
  if (!(await needs(t, 'script'))) return;
  const no = asked('--all', 'no\n');
  assert.match(no, /Run it for 2 workloads\? \[y\/N\] .*[^]*Not confirmed: make was not run/);
  assert.deepEqual([has('made-s'), has('made-u')], [false, false]);
  const yes = asked('--until check', 'perhaps\ny\n');
  assert.equal([...yes.matchAll(/Run it/g)].length, 2, yes);
  assert.match(yes, /perhaps[^]*Answer y or n\./);
  assert.deepEqual([has('made-s'), has('made-u'), has('finished')], [true, true, false], yes);
  assert.match(yes, /✓ make:s; next: make:u[^]*✓ make:u; next: check[^]*✓ check; next: finish/);

  assert.equal((await runbook('--again')).code, 0);
  writeFileSync(join(directory, 'broken'), '');
  const failed = await runbook('--all', '--yes', '--json');
  assert.equal(failed.code, 1);
  const entries = JSON.parse(failed.stdout) as { stop: string; held: boolean }[];
  assert.deepEqual(
    entries.map(({ stop, held }) => `${stop} ${held}`),
    ['look:s true', 'look:u true', 'make:s true', 'make:u true', 'check false'],
  );
  assert.match(failed.stderr, /The same command continues with this step\./);
  rmSync(join(directory, 'broken'));
  const rest = await runbook('--all', '--yes');
  assert.deepEqual([rest.code, has('finished')], [0, true], rest.stderr);
  assert.match(rest.stdout, /^check\n[^]*✓ finish: that was the last step\n$/);
  assert.match((await runbook('--all')).stdout, /^Every step is done already/);
  const check = async (): Promise<string> => (await runbook('--check')).stdout;
  assert.match(await check(), /^3 of 3 read-only steps hold\.\n$/m);
  writeFileSync(join(directory, 'broken'), '');
  assert.match(await check(), /^2 of 3 read-only steps hold\.\n {2}check: exit code 1, expected 0\n$/m);
});

test('the list counts the steps that are done of each week, up to all of them, in 80 columns', async (t) => {
  const [plan, log] = ['plan.yaml', 'log.jsonl'].map((name) => join(scratch(t), name));
  const shard = { name: 'a', listen: 'redis://127.0.0.1:1', source: 'redis://127.0.0.1:2', target: 'redis://b:1' };
  const workloads = ['read-mostly', 'counter', 'critical'].map((kind) => ({
    name: `a-long-name-of-${kind}`,
    keys: [`${kind}:*`],
    class: kind,
  }));
  writeFileSync(plan, stringify({ version: 1, name: 'test', shards: [shard], workloads }));
  const planned = loadPlan(plan).workloads;
  const weeks = shelved().weeks.map((name) => ({ name, stops: layOut(openRunbook(name), planned, null) }));
  const listed = async (done: (stops: readonly Stop[]) => readonly Stop[]): Promise<string[]> => {
    const entries = weeks.flatMap(({ name, stops }) =>
      done(stops).map(({ id, step }) => ({
        ...{ at: new Date().toISOString(), runbook: name, stop: id, kind: 'run', by: 'test' },
        ...{ command: step.run, exit: 0, failed: [] },
      })),
    );
    writeFileSync(log, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
    const { code, stdout } = await runProgram(t, 'shadow-compare', ['runbook', '--plan', plan, '--log', log]);
    assert.equal(code, 0);
    const lines = stdout.split('\n').slice(1, 1 + weeks.length);
    assert.ok(
      lines.every((line) => line.length <= 80),
      stdout,
    );
    return lines.map((line) =>
      line
        .trim()
        .replace(/^[→✓] /, '')
        .replace(/ +/, ' '),
    );
  };
  for (const at of [() => 1, (stops: readonly Stop[]) => stops.length - 1]) {
    const lines = await listed((stops) => stops.slice(0, at(stops)));
    for (const [i, { name, stops }] of weeks.entries())
      assert.ok(lines[i].startsWith(`${name} ${at(stops)} of ${stops.length} steps done; next: `), lines[i]);
  }
  assert.deepEqual(
    await listed((stops) => stops),
    weeks.map(({ name }) => `${name} done`),
  );
});
