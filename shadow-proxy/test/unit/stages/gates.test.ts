/** Gates: decisions over made-up evidence, so that each can be seen open, closed and unknown. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_CONSENT, type GateFacts } from '../../../src/stages/gate-facts.js';
import { closedGates, gatesFor, judgeGates, type Gate } from '../../../src/stages/gates.js';
import { nextPoint } from '../../../src/stages/promotion.js';
import type { StagePoint } from '../../../src/route/stage.js';
import type { WorkloadEvidence } from '../../../src/storage/evidence.js';

const SAME_SETTINGS = { visible: [], tuning: [], unread: [], refusals: { source: null, target: null } };
const TIMEOUTS = { ...SAME_SETTINGS, visible: [{ name: 'timeout', source: '9', target: '0' }] } as const;
const NOW = new Date('2026-03-04T12:00:00Z');
const SHADOW = { stage: 'shadow', percent: 100 } as const;
const LIVE = { stage: 'live', percent: 1 } as const;

const evidence: WorkloadEvidence = {
  stage: 'shadow',
  percent: 100,
  since: '2026-03-04T09:00:00Z',
  compared: 200_000,
  allowed: { unordered: 10_000 },
  mismatches: {},
  inconclusive: 100,
  inconclusiveByScript: {},
  minutes: 90,
  hours: [9, 10, 11],
  verified: { endedAt: '2026-03-04T11:00:00Z', keys: 5_000, differences: 0, failed: 0, unsure: 0 },
  drill: { at: '2026-03-04T11:30:00Z', percent: 1, heldMs: 4 },
  unsupported: {},
};
const window = (source: number, target: number, count = 10_000) => {
  const times = (p99: number) => ({ p50: p99 / 4, p99, p999: p99 * 2, count });
  return { at: '2026-03-04T10:00:00Z', source: times(source), target: times(target) };
};
const facts: GateFacts = {
  workload: 'sessions',
  comparedPerSecond: 50,
  evidence,
  target: { ownSince: null, keys: null, of: 0, problem: null },
  consent: NO_CONSENT,
  gates: {
    minCompared: 100_000,
    minMinutes: 60,
    maxMismatches: 0,
    maxP99Ratio: 1.2,
    maxAllowedShare: 0.25,
    maxInconclusiveShare: 0.001,
    maxVerifyHours: 24,
    unsupportedHours: 24,
    allowUnsupported: {},
    acceptSettings: [],
    acceptRights: [],
    drill: true,
    steps: true,
  },
  counters: 'none',
  writtenIn: null,
  spanning: 0,
  suspects: 0,
  suspect: null,
  frozen: null,
  down: false,
  servers: [],
  newer: [],
  settings: SAME_SETTINGS,
  users: { differences: [], unknown: null, same: 2, unproven: [], wider: [], onlyTarget: [] },
  refusedLogins: null,
  latencies: [window(2_000, 2_100)],
  bypassing: [],
  passed: { since: '2026-03-04T11:00:00Z', last: null },
  evicted: 0,
  sourceEvicted: 0,
  fence: null,
  checks: null,
};

const seen = (time: string, day = '2026-03-04') =>
  ({ lacks: 'target', calls: 4, first: `${day}T00:00:00Z`, last: `${day}T${time}:00Z` }) as const;

const counter = {
  workload: 'rl',
  class: 'counter',
  verdict: 'safe',
  why: 'two nodes write',
  lost: null,
  todo: null,
} as const;

const judge = (changes: Partial<GateFacts> = {}, seen: Partial<WorkloadEvidence> = {}): Record<string, Gate> =>
  Object.fromEntries(
    judgeGates({ ...facts, ...changes, evidence: { ...evidence, ...seen } }, SHADOW, LIVE, NOW).map((gate) => [
      gate.name,
      gate,
    ]),
  );

test('with all of the evidence every gate is open', () => {
  const closed = Object.values(judge()).filter(({ answer }) => answer !== 'yes');
  assert.deepEqual(closed, []);
});

test('each gate closes by itself, and says what was seen and what is wanted', () => {
  const cases: [gate: string, answer: string, text: RegExp, Partial<GateFacts>, Partial<WorkloadEvidence>?][] = [
    ['servers', 'no', /^the source is a replica of a:1; b$/, { servers: ['the source is a replica of a:1', 'b'] }],
    ['servers', 'unknown', /were not checked yet/, { servers: null }],
    ['servers', 'unknown', /were not checked yet/, { settings: null }],
    [
      'servers',
      'no',
      /^settings that clients can see differ, .*: timeout \(source "9", target "0"\)/,
      { settings: TIMEOUTS },
    ],
    [
      'users',
      'no',
      /^bob is missing on the target \(make both servers alike/,
      {
        users: {
          differences: ['bob is missing on the target'],
          unknown: null,
          same: 2,
          unproven: [],
          wider: [],
          onlyTarget: [],
        },
      },
    ],
    [
      'users',
      'no',
      /^the target refused the login of alice/,
      {
        users: {
          differences: [],
          unknown: 'the target does not tell',
          same: 0,
          unproven: [],
          wider: [],
          onlyTarget: [],
        },
        refusedLogins: ['alice'],
      },
    ],
    [
      'users',
      'unknown',
      /^the target does not tell$/,
      {
        users: {
          differences: [],
          unknown: 'the target does not tell',
          same: 0,
          unproven: [],
          wider: [],
          onlyTarget: [],
        },
        refusedLogins: [],
      },
    ],
    ['users', 'unknown', /were not checked yet/, { users: null }],
    ['compared', 'no', /^99,999 of 100,000 pairs/, {}, { compared: 99_999 }],
    ['time', 'no', /in 59 of 60 min \(180 min in this stage, 3 of 24 hours/, {}, { minutes: 59 }],
    ['mismatches', 'no', /^1 \(value 1\), at most 0/, {}, { mismatches: { value: 1 } }],
    ['allowed', 'no', /^30 % of the pairs \(unordered 60,000\), at most 25 %/, {}, { allowed: { unordered: 60_000 } }],
    ['allowed', 'unknown', /nothing was compared/, {}, { compared: 0, allowed: {} }],
    ['inconclusive', 'no', /^300 inconclusive pairs \(0.15 %\), at most 0.10 %$/, {}, { inconclusive: 300 }],
    [
      'inconclusive',
      'no',
      /; 50 % of these on keys that scripts changed .* \(script b 90, script a 50, script c 6, 1 more\); let .* gates\.maxInconclusiveShare$/,
      {},
      { inconclusive: 300, inconclusiveByScript: { 'script a': 50, 'script b': 90, 'script c': 6, 'script d': 4 } },
    ],
    ['suspects', 'no', /^3 suspect keys/, { suspects: 3 }],
    ['suspects', 'no', /every key is a suspect: not copied/, { suspect: 'not copied' }],
    ['suspects', 'no', /repairs are frozen: lost/, { frozen: 'lost' }],
    ['verify', 'unknown', /^its keys were never verified$/, {}, { verified: null }],
    [
      'verify',
      'no',
      /25\.0 h ago \(at most 24 h\)/,
      {},
      { verified: { ...evidence.verified!, endedAt: '2026-03-03T11:00:00Z' } },
    ],
    ['verify', 'no', /2 differed/, {}, { verified: { ...evidence.verified!, differences: 2 } }],
    ['verify', 'no', /1 inconclusive/, {}, { verified: { ...evidence.verified!, failed: 1 } }],
    ['latency', 'no', /is 1\.50 times the source's/, { latencies: [window(2_000, 3_000)] }],
    ['latency', 'unknown', /999 replies of the source/, { latencies: [window(2_000, 2_000, 999)] }],
    [
      'unsupported',
      'no',
      /^the target does not support lmpop \(4, last 1.0 h ago\); opens when clients have not used them for 24 h/,
      {},
      { unsupported: { lmpop: seen('11:00') } },
    ],
    [
      'unsupported',
      'no',
      /^the source does not support bitop LSHIFT \(4/,
      {},
      { unsupported: { 'bitop LSHIFT': { ...seen('11:00'), lacks: 'source' } } },
    ],
    [
      'bypass',
      'no',
      /connected to the source directly, bypassing the proxy: api at 10\.0\.0\.9 \(set\)/,
      { bypassing: ['api at 10.0.0.9 (set)'] },
    ],
    [
      'bypass',
      'no',
      /at least these writes \(set 12\), last seen 20 min ago/,
      { passed: { since: null, last: { at: '2026-03-04T11:40:00Z', writes: { set: 12 } } } },
    ],
    ['bypass', 'unknown', /CLIENT LIST/, { bypassing: null }],
    [
      'counters',
      'no',
      /^two nodes write; the sum; give it one writer$/,
      { counters: { ...counter, verdict: 'unsafe', lost: 'the sum', todo: 'give it one writer' } },
    ],
    ['counters', 'unknown', /do not report their replication roles/, { counters: null }],
    [
      'counters',
      'unknown',
      /^two nodes write; ask it$/,
      { counters: { ...counter, verdict: 'unknown', todo: 'ask it' } },
    ],
    ['counters', 'no', /its only writer is us: in this region it stays off/, { writtenIn: 'us' }],
    ['evictions', 'no', /evicted 7 keys/, { evicted: 7 }],
    [
      'evictions',
      'no',
      /evicted 7 keys since it started; the source has evicted 1,364 .* verify --repair/,
      { evicted: 7, sourceEvicted: 1_364 },
    ],
    ['evictions', 'unknown', /does not report/, { evicted: null }],
    ['drill', 'unknown', /^no rollback was rehearsed$/, {}, { drill: null }],
  ];
  for (const [name, answer, text, changes, seen] of cases) {
    const gates = judge(changes, seen);
    assert.equal(gates[name].answer, answer, name);
    assert.match(gates[name].evidence, text);
    const others = Object.values(gates).filter((gate) => gate.name !== name && gate.answer !== 'yes');
    assert.deepEqual(
      others.filter(
        (gate) => !(seen?.compared !== undefined && ['compared', 'allowed', 'inconclusive'].includes(gate.name)),
      ),
      [],
      `${name} closes no other`,
    );
  }
});

test('what only one server supports blocks until it was not seen for long, or the plan allows it with a reason', () => {
  const allowUnsupported = { LMPOP: 'the job is switched off before live' };
  const old = { lmpop: seen('11:59', '2026-03-03') };
  assert.deepEqual(
    [
      judge({}, { unsupported: old }).unsupported.answer,
      judge({}, { unsupported: { lmpop: seen('12:01', '2026-03-03') } }).unsupported.answer,
    ],
    ['yes', 'no'],
  );
  assert.match(
    judge({}, { unsupported: old }).unsupported.evidence,
    /^none in the last 24 h; before that: lmpop \(4, last 24\.0 h ago\)$/,
  );
  const allowed = judge(
    { gates: { ...facts.gates, allowUnsupported } },
    { unsupported: { lmpop: seen('11:00') } },
  ).unsupported;
  assert.deepEqual(
    [allowed.answer, allowed.evidence],
    ['yes', 'none in the last 24 h; allowed: lmpop (4, last 1.0 h ago): the job is switched off before live'],
  );
  assert.match(
    judge({}, { unsupported: { 'command docs': seen('11:00') } }).unsupported.evidence,
    /allowed: command docs .*: redis-cli sends it/,
  );
});

test('the first write to a target with keys that the shard did not write needs their number', () => {
  const keys = { found: 1_200, onSource: 200, examples: ['app:<5 bytes>'], looked: 3_000, of: 3_000, complete: true };
  const of = (target: Partial<NonNullable<GateFacts['target']>>, consent = NO_CONSENT): Gate => {
    const seen = { ...facts, target: { ownSince: null, keys: null, of: 3_000, problem: null, ...target }, consent };
    return judgeGates(seen, { stage: 'off', percent: 100 }, { stage: 'dualwrite', percent: 100 }, NOW).find(
      ({ name }) => name === 'target',
    )!;
  };
  const consent = (overwrite: boolean, deleteForeign: boolean, confirm: number): GateFacts['consent'] => ({
    overwrite,
    deleteForeign,
    confirm,
  });
  assert.equal(of({ of: 0 }).answer, 'yes');
  assert.equal(of({ ownSince: '2026-03-04T10:00:00Z' }).answer, 'yes');
  assert.equal(of({}).answer, 'unknown', 'not counted');
  assert.equal(of({ of: null, problem: 'NOPERM' }).answer, 'unknown');
  assert.equal(of({ keys: { ...keys, found: 0, onSource: 0 } }).answer, 'yes');
  assert.equal(of({ keys: { ...keys, found: 0, onSource: 0, looked: 10, complete: false } }).answer, 'unknown');
  const bound = of({ keys: { ...keys, looked: 2_000, complete: false } }, consent(true, true, 5_000));
  assert.equal(bound.answer, 'no');
  assert.match(bound.evidence, /at least 1,200 keys .* still counting: 2,000 of 3,000 keys/);
  assert.deepEqual(
    [
      consent(false, false, 1_200),
      consent(true, false, 1_199),
      consent(false, true, 1_200),
      consent(true, false, 1_200),
      consent(true, true, 1_300),
    ].map((each) => of({ keys }, each).answer),
    ['no', 'no', 'no', 'yes', 'yes'],
  );
  assert.equal(of({ keys: { ...keys, onSource: 0 } }, consent(false, true, 1_200)).answer, 'yes');
  const closed = [
    { name: 'target', answer: 'no', evidence: '' },
    { name: 'bypass', answer: 'no', evidence: '' },
  ] as const;
  assert.deepEqual(
    closedGates(closed, { force: true }).map(({ name }) => name),
    ['target'],
    'force does not pass it',
  );
});

test('a verification that found none of its keys is no evidence', () => {
  const { verify } = judge({}, { verified: { ...evidence.verified!, keys: 0 } });
  assert.equal(verify.answer, 'unknown');
});

test('latency is judged by the minute, with a floor of 1 ms', () => {
  assert.equal(judge({ latencies: [window(100, 900)] }).latency.answer, 'yes', 'both are below the floor');
  assert.equal(judge({ latencies: [window(100, 1_300)] }).latency.answer, 'no');
  const oneBadMinute = [window(2_000, 2_000), window(2_000, 20_000), window(2_000, 2_100)];
  assert.match(
    judge({ latencies: oneBadMinute }).latency.evidence,
    /is 1\.05 times the source's \(1\.00 to 10\.00 over 3 min\)/,
  );
  assert.equal(judge({ latencies: oneBadMinute }).latency.answer, 'yes');
});

test('each step asks for what can be seen before it', () => {
  assert.deepEqual(gatesFor('off', 'dualwrite'), ['servers', 'target', 'bypass', 'counters', 'checks']);
  // Of counters that the proxy rewrites: clients are sent to the target at once.
  assert.ok(gatesFor('off', 'complete').includes('users'));
  assert.ok(gatesFor('dualwrite', 'shadow').includes('suspects'));
  for (const gate of ['latency', 'drill', 'verify', 'bypass'] as const)
    assert.ok(gatesFor('shadow', 'live').includes(gate) && gatesFor('live', 'live').includes(gate), gate);
  for (const gate of ['time', 'verify', 'suspects', 'counters'] as const)
    assert.ok(gatesFor('rampdown', 'complete').includes(gate), gate);
});

test('live is taken in steps, where percent is offered', () => {
  const path = [];
  for (let at = { stage: 'off', percent: 100 } as Parameters<typeof nextPoint>[0]; at.stage !== 'complete';) {
    const next = nextPoint({ ...at, spanning: 0 });
    path.push(`${next.stage} ${next.percent}`);
    at = { ...next, spanning: 0 };
  }
  assert.deepEqual(path, [
    'dualwrite 100',
    'shadow 100',
    'live 1',
    'live 10',
    'live 50',
    'live 100',
    'rampdown 100',
    'complete 100',
  ]);
  assert.deepEqual(nextPoint({ stage: 'shadow', percent: 100, spanning: 1 }), { stage: 'live', percent: 100 });
  assert.throws(() => nextPoint({ stage: 'complete', percent: 100, spanning: 0 }), { code: 'no-return' });
});

test('live is refused at once where smaller steps are offered, and the plan asks for them', () => {
  const steps = (from: StagePoint, percent: number, changes: Partial<GateFacts> = {}): Gate =>
    judgeGates({ ...facts, ...changes }, from, { stage: 'live', percent }, NOW).find(({ name }) => name === 'steps')!;
  assert.deepEqual(
    [1, 5, 10, 100].map((percent) => steps(SHADOW, percent).answer),
    ['yes', 'no', 'no', 'no'],
  );
  assert.deepEqual(
    [10, 50, 100].map((percent) => steps(LIVE, percent).answer),
    ['yes', 'no', 'no'],
  );
  assert.equal(steps({ stage: 'live', percent: 50 }, 100).answer, 'yes');
  assert.match(
    steps(SHADOW, 100).evidence,
    /^100 % of the keys requested, at most 1 % allowed in this step: leave out --percent, and promote by 1, 10, 50, 100 %$/,
  );
  assert.equal(steps(SHADOW, 100, { spanning: 3 }).answer, 'yes');
  assert.equal(steps(SHADOW, 100, { gates: { ...facts.gates, steps: false } }).answer, 'yes');
});

test('a closed gate names the whole command that opens it; the drill comes after the gates that it needs', () => {
  const verified = evidence.verified!;
  const passed = { since: null, last: { at: '2026-03-04T11:40:00Z', writes: { set: 1 } } };
  const cases: [gate: string, command: string | undefined, Partial<GateFacts>, Partial<WorkloadEvidence>?][] = [
    ['verify', 'verify --workload sessions', {}, { verified: null }],
    ['verify', 'verify --workload sessions', {}, { verified: { ...verified, endedAt: '2026-03-01T11:00:00Z' } }],
    ['verify', 'verify --workload sessions', {}, { verified: { ...verified, unsure: 1 } }],
    ['verify', 'verify --workload sessions --repair', {}, { verified: { ...verified, differences: 1 } }],
    ['verify', undefined, {}],
    ['suspects', 'accept --dry-run', { frozen: 'lost' }],
    ['suspects', 'backfill --workload sessions', { suspect: 'keys from before the dual write are not copied yet' }],
    ['suspects', undefined, { suspects: 1 }],
    ['bypass', 'verify --workload sessions --repair', { passed }],
    ['bypass', undefined, { passed, frozen: 'lost' }],
    ['verify', undefined, { frozen: 'lost' }, { verified: { ...verified, differences: 1 } }],
    ['drill', 'rollback sessions --drill', {}, { drill: null }],
    ['drill', undefined, { suspects: 1 }, { drill: null }],
  ];
  for (const [name, command, changes, seen] of cases) assert.equal(judge(changes, seen)[name].command, command, name);
  assert.equal(
    judge({ suspects: 1 }, { drill: null, verified: null }).drill.evidence,
    'no rollback was rehearsed; open these gates first: suspects, verify',
  );
  assert.doesNotMatch(judge({ suspects: 1 }).drill.evidence, /first/, 'an open gate asks for nothing');
});

test('a gate that counts says when it opens, from the measured rate, and never makes a time up', () => {
  const cases: [
    perSecond: number | null,
    compared: RegExp,
    ms: number | null | undefined,
    time: RegExp,
    timeMs: number | null | undefined,
  ][] = [
    [
      54,
      /^61,200 of 100,000 pairs of replies; about 12 min at the present rate \(54 per second\)$/,
      (38_800 / 54) * 1_000,
      /; about 20 min if replies are compared in each minute, as now$/,
      1_200_000,
    ],
    [
      0,
      /pairs of replies; time left unknown: nothing is compared at present$/,
      undefined,
      /unknown: nothing is/,
      undefined,
    ],
    [null, /pairs of replies; time left unknown: the present rate is not known$/, null, /rate is not known/, null],
  ];
  for (const [comparedPerSecond, compared, ms, time, timeMs] of cases) {
    const gates = judge({ comparedPerSecond }, { compared: 61_200, minutes: 40 });
    assert.match(gates.compared.evidence, compared);
    assert.match(gates.time.evidence, time);
    assert.deepEqual([gates.compared.opensInMs, gates.time.opensInMs], [ms, timeMs]);
  }
  const small = judge({ gates: { ...facts.gates, minMinutes: 0.1 } }, { minutes: 0 });
  assert.match(small.time.evidence, /^replies compared in 0 of 0\.1 min .*; about 6 s if/);
  const open = judge({ comparedPerSecond: 0 });
  for (const name of ['compared', 'time']) {
    assert.equal('opensInMs' in open[name], false, name);
    assert.doesNotMatch(open[name].evidence, /time left|about/, name);
  }
});

test('no gate says N of M with an N above its M, however much there is', () => {
  for (const compared of [0, 1, 99_999, 100_000, 4_493_000])
    for (const minutes of [0, 59, 60, 900])
      for (const minMinutes of [0.1, 60]) {
        const gates = judge({ gates: { ...facts.gates, minMinutes } }, { compared, minutes });
        for (const { name, evidence: said } of Object.values(gates))
          for (const [, n, m] of said.matchAll(/([\d,.]+) of (?:about )?([\d,.]+)/g))
            assert.ok(Number(n.replaceAll(',', '')) <= Number(m.replaceAll(',', '')), `${name}: ${said}`);
      }
  const { compared, time } = judge({}, { compared: 4_493_000, minutes: 900 });
  assert.match(compared.evidence, /^4,493,000 pairs of replies, at least 100,000 needed/);
  assert.match(time.evidence, /^replies compared in 900 min, at least 60 needed/);
});

test('bypass: before the copy the gate asks for one minute without such writes, and for no repair', () => {
  const OFF = { stage: 'off', percent: 100 } as const;
  const DUALWRITE = { stage: 'dualwrite', percent: 100 } as const;
  const bypass = (minutes: number, from: typeof OFF | typeof DUALWRITE, changes: Partial<GateFacts> = {}): Gate => {
    const at = new Date(NOW.getTime() - minutes * 60_000).toISOString();
    const passed = { since: null, last: { at, writes: { set: 1 } } };
    const to = from === OFF ? DUALWRITE : SHADOW;
    return judgeGates({ ...facts, passed, ...changes }, from, to, NOW).find(({ name }) => name === 'bypass')!;
  };
  const NOT_COPIED = 'keys from before the dual write are not copied yet';
  for (const closed of [bypass(0, OFF), bypass(0, DUALWRITE, { suspect: NOT_COPIED })]) {
    assert.deepEqual([closed.answer, closed.command], ['no', undefined]);
    assert.match(closed.evidence, /stop them, wait 1 min; the backfill copies what they wrote$/);
  }
  assert.equal(bypass(1, OFF).answer, 'yes');
  assert.equal(bypass(1, DUALWRITE, { suspect: NOT_COPIED }).answer, 'yes');
  const copied = bypass(1, DUALWRITE);
  assert.deepEqual([copied.answer, copied.command], ['no', 'verify --workload sessions --repair']);
  assert.match(copied.evidence, /wait 60 min, then repair what the target missed$/);
});

test('a server that is newer than this release knows closes the gate servers until it is accepted', () => {
  const server = { name: 'Redis 8.12', evidence: 'the source is Redis 8.12: not known' };
  const closed = judge({ newer: [{ ...server, accepted: false }] }).servers;
  assert.equal(closed.answer, 'no');
  assert.match(closed.evidence, /^the source is Redis 8\.12: not known\. Take a newer release.*--accept-version/);
  const open = judge({ newer: [{ ...server, accepted: true }] }).servers;
  assert.equal(open.answer, 'yes');
  assert.match(open.evidence, /; accepted: the source is Redis 8\.12: not known/);
});
