/** The plan's Sentinel. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkReload, firstStages } from '../../../src/plan/reload.js';
import { otherShard, printProblems, problemsOf, scratch, smallPlan, toPlan } from '../../support/plans.js';

const HOST = { ADDRESS: '10.0.0.1' };

test('it has the addresses by which others reach this process, and a password from a file', (t) => {
  const directory = scratch(t, { password: 'secret\n' });
  const sentinel = {
    listen: 'redis://0.0.0.0:26379',
    announce: '${ADDRESS}:26379',
    passwordFile: 'password',
    masters: [{ name: 'main', shard: 'a', announce: '${ADDRESS}:6400' }],
  };
  assert.deepEqual(toPlan({ ...smallPlan(), sentinel }, HOST, directory).sentinel, {
    listen: { host: '0.0.0.0', port: 26379, label: 'redis://0.0.0.0:26379', tls: null, proxyProtocol: null },
    announce: { host: '10.0.0.1', port: 26379 },
    username: 'default',
    password: 'secret',
    masters: [{ name: 'main', shard: 'a', announce: { host: '10.0.0.1', port: 6400 } }],
  });
  assert.equal(toPlan(smallPlan()).sentinel, null);
});

test('without masters it has those of sources that are given by Sentinels, at the addresses of their shards', () => {
  const plan = smallPlan();
  plan.shards[0].source = 'redis+sentinel://10.0.0.7:26379/orders';
  plan.shards.push(otherShard());
  plan.sentinel = { listen: 'redis://127.0.0.1:26379' };
  const { announce, masters, password } = toPlan(plan).sentinel!;
  assert.deepEqual(announce, { host: '127.0.0.1', port: 26379 });
  assert.deepEqual(masters, [{ name: 'orders', shard: 'a', announce: { host: '127.0.0.1', port: 6400 } }]);
  assert.equal(password, null);
});

for (const [what, sentinel, problem] of [
  [
    'no source is given by Sentinels',
    { listen: 'redis://127.0.0.1:26379' },
    /^sentinel\.masters: is missing, and no source is given by Sentinels/,
  ],
  [
    'a shard is unknown',
    { listen: 'redis://127.0.0.1:26379', masters: [{ name: 'main', shard: 'b' }] },
    /^sentinel\.masters\.0\.shard: is b, and the plan has a$/,
  ],
  [
    'nobody can connect to the address',
    { listen: 'redis://0.0.0.0:26379', masters: [{ name: 'main', shard: 'a' }] },
    /^sentinel\.announce: is missing, and listen is 0\.0\.0\.0/,
  ],
  [
    'the port is another listener',
    { listen: 'redis://127.0.0.1:6400', masters: [{ name: 'main', shard: 'a' }] },
    /^sentinel\.listen: is 127\.0\.0\.1:6400, which shards\.0\.listen uses already/,
  ],
  [
    'a name or a shard occurs twice',
    {
      listen: 'redis://127.0.0.1:26379',
      masters: [
        { name: 'main', shard: 'a' },
        { name: 'main', shard: 'a' },
      ],
    },
    /masters\.1\.name: is the name of masters\[0\] too.*\n.*masters\.1\.shard: is the shard of masters\[0\] too/,
  ],
  [
    'a host has characters that the name of a connection cannot have',
    { listen: 'redis://127.0.0.1:26379', announce: 'a;b:1', masters: [{ name: 'main', shard: 'a' }] },
    /^sentinel\.announce: has the host a;b/,
  ],
  [
    'the password is in the URL',
    { listen: 'redis://:secret@127.0.0.1:26379', masters: [{ name: 'main', shard: 'a' }] },
    /^sentinel\.listen: holds a user or password: the password of its clients is in passwordFile$/,
  ],
  [
    'a certificate is missing',
    { listen: 'rediss://127.0.0.1:26379', masters: [{ name: 'main', shard: 'a' }] },
    /^sentinel\.listen: is rediss:\/\/, so tls\.listen with cert and key is needed$/,
  ],
] as const)
  test(`it is refused where ${what}`, () => {
    const problems = printProblems(problemsOf((plan) => (plan.sentinel = sentinel), HOST));
    assert.match(problems, problem);
    assert.doesNotMatch(problems, /secret/);
  });

test('clients of a cluster do not ask Sentinels', () => {
  const problems = problemsOf((plan) => {
    delete plan.shards;
    plan.cluster = { source: 'redis://h:1', target: 'redis://h:2', listen: 'redis://127.0.0.1:6400' };
    plan.sentinel = { listen: 'redis://127.0.0.1:26379' };
  });
  assert.match(printProblems(problems), /^sentinel: and cluster are both given/);
});

test('a running process takes over its password, and no other address or name', (t) => {
  const directory = scratch(t, { one: '1', two: '2' });
  const planWith = (sentinel: object) =>
    toPlan(
      {
        ...smallPlan(),
        sentinel: { listen: 'redis://127.0.0.1:26379', masters: [{ name: 'main', shard: 'a' }], ...sentinel },
      },
      {},
      directory,
    );
  const before = planWith({ passwordFile: 'one' });
  const problems = (after: typeof before): readonly string[] => checkReload(before, after, firstStages(before));
  assert.deepEqual(problems(planWith({ passwordFile: 'two' })), []);
  for (const change of [{ listen: 'redis://127.0.0.1:26380' }, { masters: [{ name: 'other', shard: 'a' }] }])
    assert.deepEqual(problems(planWith(change)), ['sentinel changed: restart the proxy for that']);
  assert.deepEqual(problems(toPlan(smallPlan(), {}, directory)), ['sentinel changed: restart the proxy for that']);
});
