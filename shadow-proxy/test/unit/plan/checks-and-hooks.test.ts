/** The plan's checks and hooks: what they may be, and what is said of one that cannot be asked. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printProblems, problemsOf, scratch, smallPlan, toPlan } from '../../support/plans.js';

const problemOf = (check: object, directory?: string): string =>
  printProblems(problemsOf((plan) => (plan.checks = [{ name: 'a', ...check }]), {}, directory));

test('a check asks Prometheus, an HTTP service or a program, and its token comes from a file', (t) => {
  const directory = scratch(t, { token: 'secret\n' });
  const checks = [
    { name: 'errors', prometheus: 'http://p:9090/', query: 'up', min: 1, tokenFile: 'token', workloads: ['default'] },
    { name: 'health', http: 'https://x/healthz', deadlineMs: 100 },
    { name: 'on-call', command: ['/bin/agrees', '--now'] },
  ];
  const common = { workloads: null, deadlineMs: 5_000 };
  assert.deepEqual(toPlan({ ...smallPlan(), checks }, {}, directory).checks, [
    {
      ...common,
      ...{ name: 'errors', kind: 'prometheus', workloads: ['default'] },
      ...{ url: 'http://p:9090', query: 'up', max: null, min: 1, token: 'secret' },
    },
    { ...common, name: 'health', kind: 'http', url: 'https://x/healthz', token: null, deadlineMs: 100 },
    { ...common, name: 'on-call', kind: 'command', command: ['/bin/agrees', '--now'] },
  ]);
  const hooks = [{ name: 'announce', when: 'after', command: ['announce'] }];
  assert.deepEqual(toPlan({ ...smallPlan(), hooks }).hooks, [{ ...hooks[0], workloads: null, deadlineMs: 10_000 }]);
  assert.deepEqual([toPlan(smallPlan()).checks, toPlan(smallPlan()).hooks], [[], []]);
});

test('a check that cannot be asked is named, with what to write', (t) => {
  assert.match(problemOf({}), /^checks\.0: names nothing to ask: give prometheus, http or command, one of them$/);
  assert.match(problemOf({ http: 'http://x', command: ['x'] }), /has http and command: give/);
  assert.match(problemOf({ http: 'x:80' }), /^checks\.0\.http: has no http or https URL$/);
  assert.match(problemOf({ http: 'http://x', max: 1 }), /^checks\.0\.max: is given, but the check asks http/);
  assert.match(problemOf({ prometheus: 'http://x', max: 1 }), /^checks\.0\.query: is missing/);
  assert.match(problemOf({ prometheus: 'http://x', query: 'up' }), /^checks\.0\.max: is missing, and so is min/);
  assert.match(
    problemOf({ prometheus: 'http://x', query: 'up', max: 1, min: 2 }),
    /^checks\.0\.min: is 2, more than max, 1: no value is within both$/,
  );
  const directory = scratch(t, { token: 'x' });
  assert.match(problemOf({ command: ['x'], tokenFile: 'token' }, directory), /^checks\.0\.tokenFile: is given, but/);
  assert.match(problemOf({ http: 'http://x', workloads: ['session'] }), /^checks\.0\.workloads\.0: is "session", and/);
  const twice = (plan: { hooks?: unknown }): unknown =>
    (plan.hooks = ['before', 'after'].map((when) => ({ name: 'a', when, command: ['x'] })));
  assert.match(printProblems(problemsOf(twice)), /^hooks\.1\.name: is the name of hooks\[0\] too/);
});
