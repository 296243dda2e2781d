/**
 * Which changes of a plan a running process takes over, and which it refuses.
 *
 * Needs real files: plan files and certificates that change.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Stages } from '../../../src/plan/plan.js';
import type { StagePoint } from '../../../src/route/stage.js';
import {
  checkOwns,
  checkReload,
  checkRouting,
  firstStages,
  routingOf,
  writtenOwns,
  type Routing,
} from '../../../src/plan/reload.js';
import { compileGlob } from '../../../src/route/glob.js';
import type { Stage } from '../../../src/route/stage.js';
import { missing } from '../../support/needs.js';
import { makeCertificates, type Certificates } from '../../support/servers.js';
import { otherShard, smallPlan, toPlan, type PlanObject } from '../../support/plans.js';

const at = (stage: Stage, percent = 100): StagePoint => ({ stage, percent });
const STAGES: Stages = { sessions: at('shadow'), default: at('off') };

/** What is said about a changed small plan while `sessions` is in shadow and the rest is off. */
function reload(change: (plan: PlanObject) => void, stages: Stages = STAGES): string[] {
  const next = smallPlan();
  change(next);
  return checkReload(toPlan(smallPlan()), toPlan(next), stages);
}

/** What is said about other patterns, in the same situation. */
function reroute(change: (plan: PlanObject) => void, stages: Stages = STAGES): string[] {
  const next = smallPlan();
  change(next);
  return checkRouting(routingOf(toPlan(smallPlan())), routingOf(toPlan(next)), stages, firstStages(toPlan(next)));
}

describe('a plan may be reloaded', () => {
  for (const [name, change] of [
    ['unchanged', () => undefined],
    ['with other gates', (plan) => (plan.gates = { minCompared: 1 })],
    [
      'with other limits',
      (plan) =>
        (plan.limits = { clients: 5, drainMs: 1, queueBytes: 1, clientOutputBytes: 1, connectMs: 1, flipMs: 1 }),
    ],
    ['with another ledger', (plan) => (plan.ledger = { redact: false, maxBytes: 1, files: 1 })],
    ['with another class', (plan) => (plan.workloads[0].class = 'critical')],
    ['with another password of the source', (plan) => (plan.shards[0].source = 'redis://:p@127.0.0.1:6379')],
    ['with another first stage, which no longer counts', (plan) => (plan.workloads[0].stage = 'live')],
    ['with another token', (plan) => (plan.admin = { token: 'new' })],
  ] as [string, (plan: PlanObject) => void][]) {
    test(name, () => assert.deepEqual(reload(change), []));
  }
});

describe('reloading a plan is refused if the running process would not apply a change:', () => {
  for (const [name, change, expected] of [
    [
      'another source',
      (plan) => (plan.shards[0].source = 'redis://127.0.0.1:1'),
      /^source of shard a changed: restart the proxy for that$/,
    ],
    ['another target', (plan) => (plan.shards[0].target = 'redis://127.0.0.1:1'), /^target of shard a changed/],
    [
      'TLS where there was none',
      (plan) => (plan.shards[0].target = 'rediss://127.0.0.1:6390'),
      /^target of shard a changed/,
    ],
    ['another user', (plan) => (plan.shards[0].source = 'redis://u:p@127.0.0.1:6379'), /^source of shard a changed/],
    ['another address', (plan) => (plan.shards[0].listen = 'redis://127.0.0.1:1'), /^listen of shard a changed/],
    ['other owners', (plan) => (plan.shards[0].owns = ['x']), /^owns of shard a changed/],
    ['other owners, by slots', (plan) => (plan.shards[0].owns = { slots: '0-1' }), /^owns of shard a changed/],
    ['another admin address', (plan) => (plan.admin = { listen: '127.0.0.1:1' }), /^admin\.listen changed/],
    [
      'an admin address of a shard',
      (plan) => (plan.shards[0].admin = { listen: '127.0.0.1:1' }),
      /^admin\.listen of shard a changed/,
    ],
    ['another name', (plan) => (plan.name = 'x'), /^name changed/],
    ['another directory of state', (plan) => (plan.state = './x'), /^state changed/],
    ['a new shard', (plan) => plan.shards.push(otherShard()), /^shard b is new/],
    ['another shard', (plan) => (plan.shards[0].name = 'z'), /^shard a was removed: .*\nshard z is new/],
    [
      'another topology',
      (plan) => (plan.topology = { mode: 'active-active', regions: ['a', 'b'] }),
      /^topology changed/,
    ],
    [
      'another pattern',
      (plan) => plan.workloads.push({ name: 'rl', keys: ['rl:*'], stage: 'off' }),
      /^workloads changed: restart the proxy for that$/,
    ],
    [
      'other channels',
      (plan) => (plan.workloads[0].channels = ['c']),
      /^workloads changed: restart the proxy for that$/,
    ],
    [
      'a pattern that would move keys',
      (plan) => (plan.workloads = []),
      /^workloads changed: .*\nkeys of session:\* could move/,
    ],
  ] as [string, (plan: PlanObject) => void, RegExp][]) {
    test(name, () => assert.match(reload(change).join('\n'), expected));
  }
});

describe('of certificates, a reload takes', { skip: await missing('openssl') }, () => {
  const [before, after] = [makeCertificates(), makeCertificates()];
  const withTls = (
    { ca, cert, key }: Certificates,
    listen: object = {},
    target: object = {},
  ): ReturnType<typeof toPlan> => {
    const plan = smallPlan();
    Object.assign(plan.shards[0], {
      listen: 'rediss://127.0.0.1:6400',
      target: 'rediss://127.0.0.1:6390',
      tls: { listen: { ca, cert, key, ...listen }, target: { ca, cert, key, ...target } },
    });
    return toPlan(plan);
  };
  const what = (next: ReturnType<typeof toPlan>): string => checkReload(withTls(before), next, STAGES).join('\n');

  test('no change of whether clients need one', () =>
    assert.match(
      what(withTls(before, { requireClientCert: true })),
      /^listen of shard a changed: restart the proxy for that$/,
    ));
  test('no other name of a server', () =>
    assert.match(
      what(withTls(before, {}, { servername: 'other' })),
      /^target of shard a changed: restart the proxy for that$/,
    ));
  test('other files', () => assert.equal(what(withTls(after)), ''));
});

describe('which keys a shard has on a shared target', () => {
  const shared = (...owns: (unknown | null)[]): ReturnType<typeof toPlan> => {
    const target = smallPlan().shards[0].target as string;
    const shards = [smallPlan().shards[0], { ...otherShard(), target }].map((shard, i) => ({
      ...shard,
      ...(owns[i] !== null && { owns: owns[i] }),
    }));
    return toPlan({ ...smallPlan(), shards });
  };
  const written = (plan: ReturnType<typeof toPlan>): (string | null)[] =>
    plan.shards.map((shard) => writtenOwns(plan, shard));
  const said = (plan: ReturnType<typeof toPlan>, before: string | null, stages: Stages): string | null =>
    checkOwns(plan, plan.shards[0], before, stages);
  const live = { sessions: at('live', 10), default: at('shadow') };

  test('is known by what it says, or by what the others say', () => {
    assert.deepEqual(written(shared(null, null)), [null, null]);
    assert.deepEqual(written(shared(['a'], null)), ['{"patterns":["a"]}', 'all but [{"patterns":["a"]}]']);
    assert.deepEqual(written(shared({ slots: '1-2,4' }, { slots: '5' })), [
      '{"slots":[[1,2],[4,4]]}',
      '{"slots":[[5,5]]}',
    ]);
  });

  test('may change up to shadow, and not beyond', () => {
    assert.equal(
      said(shared(['b'], null), '{"patterns":["a"]}', { sessions: at('shadow'), default: at('dualwrite') }),
      null,
    );
    assert.equal(said(shared(['a'], null), '{"patterns":["a"]}', live), null);
    assert.match(
      said(shared(['b'], null), '{"patterns":["a"]}', live)!,
      /^owns of shard a changed \(before: .*\), and workload sessions is live 10 %: roll it back to shadow first$/,
    );
    assert.match(
      said(shared(null, ['b']), null, live)!,
      /^shard a shares its target and has no owns, but workload sessions is live 10 %: add owns to it$/,
    );
  });
});

describe('patterns may change', () => {
  for (const [name, change] of [
    [
      'to a new workload in the stage that its keys are in',
      (plan) => plan.workloads.push({ name: 'rl', keys: ['rl:*'], stage: 'off' }),
    ],
    [
      'to a new workload in front, in the stage that its keys are in',
      (plan) => plan.workloads.unshift({ name: 'vip', keys: ['session:vip:*'], stage: 'shadow' }),
    ],
  ] as [string, (plan: PlanObject) => void][]) {
    test(name, () => assert.deepEqual(reroute(change), []));
  }

  test('where both workloads are in one stage', () => {
    assert.deepEqual(
      reroute((plan) => plan.workloads[0].keys.push('rl:*'), { ...STAGES, default: at('shadow') }),
      [],
    );
  });

  test('in order, where they have no key in common', () => {
    const [a, b] = [
      ['a:*', 'x'],
      ['b:*', 'y'],
    ] as const;
    assert.deepEqual(checkRouting([a, b], [b, a], { x: at('off'), y: at('shadow'), default: at('live') }, {}), []);
  });
});

describe('patterns may not change', () => {
  for (const [name, change, expected] of [
    [
      'so that they take keys from a workload of another stage',
      (plan) => (plan.workloads[0].keys = ['session:eu:*']),
      /keys of session:\* could move from workload sessions \(shadow\) to default \(off\)/,
    ],
    [
      'so that they give keys to a workload of another stage',
      (plan) => plan.workloads[0].keys.push('rl:*'),
      /keys of rl:\* could move from workload default \(off\) to sessions \(shadow\): move both to the same stage first/,
    ],
    [
      'to a new workload that starts in another stage',
      (plan) => plan.workloads.push({ name: 'rl', keys: ['rl:*'], stage: 'shadow' }),
      /to rl \(shadow\)/,
    ],
    [
      'to nothing where their workload is in another stage',
      (plan) => (plan.workloads = []),
      /keys of session:\* could move from workload sessions \(shadow\) to default \(off\)/,
    ],
  ] as [string, (plan: PlanObject) => void, RegExp][]) {
    test(name, () => assert.match(reroute(change).join('\n'), expected));
  }

  test('so that they move keys between two shares of live', () => {
    const routing: Routing = [['a:*', 'x']];
    const stages = { x: at('live', 10), default: at('live', 20) };
    assert.match(
      checkRouting(routing, [], stages, {}).join(),
      /from workload x \(live 10 %\) to default \(live 20 %\)/,
    );
    assert.deepEqual(checkRouting(routing, [], { ...stages, default: at('live', 10) }, {}), []);
  });

  test('keys between layouts, where the target has them', () => {
    const [before, after]: [string, string][][] = [
      [['x:*', 'x']],
      [
        ['x:1*', 'y'],
        ['x:*', 'x'],
      ],
    ];
    const check = (stage: 'off' | 'complete') =>
      checkRouting(before, after, { x: at(stage), y: at(stage), default: at(stage) }, {}, ['y']);
    assert.match(
      check('complete').join(),
      /could move from workload x \(complete\) to y \(complete\): counterLayout of one of them is per-region/,
    );
    assert.deepEqual(check('off'), []);
  });
});

test('a plan’s own stages are first stages', () => {
  const plan = toPlan({ ...smallPlan(), workloads: [{ name: 'w', keys: ['w'], stage: 'live', percent: 5 }] });
  assert.deepEqual(firstStages(plan), { w: at('live', 5), default: at('off') });
});

const KEYS = ['', 'a', 'b', 'aa', 'ab', 'ba', 'bb', 'aaa', 'aba', 'bab', 'abb'];
const pattern = fc.array(fc.constantFrom('a', 'b', '*', '?', '[ab]'), { maxLength: 3 }).map((parts) => parts.join(''));
const routing = fc.array(fc.tuple(pattern, fc.constantFrom('w1', 'w2', 'w3')), { maxLength: 4 });
const stages = fc.record({
  w1: fc.constantFrom(at('off'), at('shadow')),
  w2: fc.constantFrom(at('off'), at('shadow')),
  w3: fc.constantFrom(at('off'), at('shadow')),
  default: fc.constantFrom(at('off'), at('shadow')),
});

const workloadOf = (rules: Routing, key: string): string => {
  const bytes = Buffer.from(key);
  return rules.find(([glob]) => compileGlob(glob)(bytes, 0, bytes.length))?.[1] ?? 'default';
};

test('whatever is let pass leaves every key in its stage', () => {
  let passed = 0;
  fc.assert(
    fc.property(routing, routing, stages, (before, after, stage: Stages) => {
      if (checkRouting(before, after, stage, {}).length > 0) return;
      passed++;
      for (const key of KEYS) {
        const [from, to] = [workloadOf(before, key), workloadOf(after, key)];
        assert.deepEqual(stage[to], stage[from], `${key} went from ${from} to ${to}`);
      }
    }),
    { numRuns: 5_000 },
  );
  assert.ok(passed > 100, 'the check lets something pass');
});
