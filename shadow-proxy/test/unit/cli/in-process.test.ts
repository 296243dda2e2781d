/** Which commands of a runbook need no shell. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { argumentsOf } from '../../../src/cli/in-process.js';
import { openRunbook, runbookNames } from '../../../src/runbook/shelf.js';

const VALUES = { PLAN: '/a plan.yaml', WORKLOAD: 'sessions', MIGRATION: 'shop' };
const ours = (rest: string): readonly string[] | null => argumentsOf(`npx --no-install shadow-compare ${rest}`, VALUES);

test('a command of the kit alone is taken apart as a shell would', () => {
  assert.deepEqual(ours('promote "$WORKLOAD" --to live --plan "$PLAN"\n'), [
    'promote',
    'sessions',
    '--to',
    'live',
    '--plan',
    '/a plan.yaml',
  ]);
  assert.deepEqual(ours(`rollback --all --reason 'costs $WORKLOAD' --plan "$PLAN"`)?.slice(2, 4), [
    '--reason',
    'costs $WORKLOAD',
  ]);
});

test('anything else is for a shell', () => {
  for (const rest of [
    'status | grep live',
    'status && echo',
    'status; true',
    'status > file',
    'status --plan "$(pwd)/plan"',
    'report --out report.html',
    'status --plan "$HOME/plan"',
    'status "a b',
  ])
    assert.equal(ours(rest), null, rest);
  assert.equal(argumentsOf('redis-cli ping', VALUES), null);
});

test('most steps of the weeks need none', () => {
  const steps = runbookNames()
    .filter((name) => name.startsWith('week-'))
    .flatMap((name) => openRunbook(name).steps);
  const inside = steps.filter(({ run }) => argumentsOf(run, VALUES) !== null);
  assert.ok(inside.length > steps.length * 0.8, `${inside.length} of ${steps.length}`);
});
