/** Whether a workload's clients are sent to the mirror when their authority dies: decisions over made-up facts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { says, unknown } from '../../../src/stages/gate-answer.js';
import { decideFailover, type FailoverFacts } from '../../../src/health/failover.js';
import { insteadOf } from '../../../src/telemetry/advice.js';

const facts: FailoverFacts = {
  name: 'sessions',
  stage: 'shadow',
  percent: 100,
  dead: 'source',
  policy: 'automatic',
  suspect: null,
  unconfirmed: 0,
  unsupported: 0,
  users: null,
};
const decide = (changes: Partial<FailoverFacts>): string => {
  const decision = decideFailover({ ...facts, ...changes });
  return 'to' in decision
    ? `${decision.to.stage} ${decision.to.percent}`
    : `${decision.why} | ${decision.next}${insteadOf(decision)}`;
};

test('automatic and clean: clients are sent to the other server', () => {
  assert.equal(decide({}), 'live 100');
  assert.equal(decide({ users: says(true, '2 users are the same') }), 'live 100');
  assert.equal(decide({ stage: 'live', percent: 10 }), 'live 100');
  assert.equal(decide({ stage: 'live', percent: 10, dead: 'target' }), 'shadow 100');
  assert.equal(decide({ stage: 'live', dead: 'target' }), 'shadow 100');
  assert.equal(decide({ stage: 'rampdown', dead: 'target' }), 'shadow 100');
});

test('anything else waits for the operator, and says what is known and what can be done', () => {
  const cases: [Partial<FailoverFacts>, RegExp][] = [
    [
      { policy: 'manual' },
      /^failover is manual; the mirror is clean.*\| start the source again; or continue on the target: shadow-compare promote sessions --to live --percent 100 --force --reason 'the source is down'$/,
    ],
    [
      { policy: 'manual', stage: 'live', dead: 'target' },
      /\| start the target again; or continue on the source: shadow-compare rollback sessions$/,
    ],
    [
      { suspect: 'not copied' },
      /^the mirror is not clean: every key is a suspect: not copied \| start the source again$/,
    ],
    [
      { unconfirmed: 3 },
      /^the mirror is not clean.*3 keys \| .*: shadow-compare promote sessions --to live --percent 100 --force --force-suspects --reason 'these writes may be lost'$/,
    ],
    [
      { unconfirmed: 3, stage: 'live', dead: 'target' },
      /: shadow-compare rollback sessions --to shadow --force --reason 'these writes may be lost'$/,
    ],
    [
      { users: says(false, 'app is missing on the target') },
      /^the gate users is closed: app is missing on the target \| start the source again; or let clients use the target all the same: .* --force --force-users --reason/,
    ],
    [{ users: unknown('the source did not list its users') }, /^the gate users is closed: the source did not list/],
    [
      { users: says(false, 'app is missing on the target'), policy: 'manual' },
      /^failover is manual.*; or continue on the target \(the gate users is closed: app is missing on the target\): .* --force --force-users --reason/,
    ],
    [
      { users: says(false, 'app is missing on the target'), unconfirmed: 3 },
      /\(the gate users is closed: .*\): .* --force --force-users --force-suspects --reason/,
    ],
    [
      { stage: 'dualwrite' },
      /^the workload is in dualwrite: no reply of the mirror was compared \| .*: shadow-compare promote sessions --to shadow --force --reason 'the source is down'$/,
    ],
    [
      { stage: 'dualwrite', unconfirmed: 3 },
      /^the mirror is not clean: .* 3 keys \| .*: shadow-compare promote sessions --to shadow --force --reason 'the source is down'$/,
    ],
    [{ unsupported: 4 }, /^clients use commands that the target does not support \(4 calls\)/],
    [{ stage: 'off' }, /^only the source has its keys \| start the source again$/],
    [{ stage: 'complete', dead: 'target' }, /^only the target has its keys \| start the target again$/],
  ];
  for (const [changes, expected] of cases) assert.match(decide(changes), expected);
});
