/** Networks of load balancers, and what a plan says of PROXY headers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { networkProblem, Networks } from '../../../src/plan/networks.js';
import { printProblems, problemsOf, smallPlan, toPlan } from '../../support/plans.js';
import { checkReload } from '../../../src/plan/reload.js';

test('an address is in a network by its first bits', () => {
  const networks = new Networks(['10.8.0.0/13', '192.0.2.7', '2001:db8::/33', '::1']);
  for (const inside of ['10.8.0.0', '10.15.255.255', '::ffff:10.9.1.1', '192.0.2.7', '2001:db8:7fff::1', '::1'])
    assert.equal(networks.has(inside), true, inside);
  for (const outside of [
    '10.7.255.255',
    '10.16.0.0',
    '192.0.2.8',
    '2001:db8:8000::1',
    '::2',
    '',
    'redis-1',
    '::ffff:10.16.0.1',
  ])
    assert.equal(networks.has(outside), false, outside);
  assert.equal(new Networks(['0.0.0.0/0']).has('203.0.113.1'), true);
  assert.equal(new Networks(['fe80::/10']).has('fe80::1%eth0'), true);
  assert.equal(new Networks([]).has('127.0.0.1'), false);
});

test('what is no network is named', () => {
  for (const right of ['10.0.0.0/8', '10.1.2.3/0', '10.1.2.3', '::/0', '2001:db8::1/128'])
    assert.equal(networkProblem(right), null, right);
  for (const wrong of [
    '',
    'lb-1',
    '10.0.0/8',
    '10.0.0.0/',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/8 ',
    '10.0.0.0/-1',
    'fe80::1%lo',
  ])
    assert.notEqual(networkProblem(wrong), null, wrong);
});

const withProtocol = (proxyProtocol: unknown) => (plan: Record<string, unknown[]>) =>
  void Object.assign(plan.shards[0] as object, { proxyProtocol });

test('the plan says who may send a PROXY header', () => {
  const of = (proxyProtocol: unknown): unknown => {
    const plan = smallPlan();
    if (proxyProtocol !== undefined) withProtocol(proxyProtocol)(plan);
    return toPlan(plan).shards[0].listen.proxyProtocol;
  };
  assert.equal(of(undefined), null);
  assert.equal(of({ mode: 'off' }), null);
  assert.equal(of({ mode: 'off', from: ['10.0.0.0/8'] }), null);
  assert.deepEqual(of({ mode: 'required', from: ['10.0.0.0/8'] }), { mode: 'required', from: ['10.0.0.0/8'] });
});

test('a plan without networks, or with wrong ones, is refused', () => {
  const problems = (proxyProtocol: unknown): string => printProblems(problemsOf(withProtocol(proxyProtocol)));
  assert.equal(
    problems({ mode: 'optional' }),
    'shards.0.proxyProtocol.from: is empty, and mode is optional: list the networks of the load balancers',
  );
  assert.equal(
    problems({ mode: 'required', from: ['10.0.0.0/8', 'lb.internal'] }),
    'shards.0.proxyProtocol.from.1: is "lb.internal", which is no address or network: write 10.0.0.0/8, 2001:db8::/32 or 10.1.2.3',
  );
  assert.equal(
    problems({ mode: 'required', from: ['10.0.0.0/40'] }),
    'shards.0.proxyProtocol.from.0: is "10.0.0.0/40", which needs a number from 0 to 32 behind 10.0.0.0/',
  );
  assert.match(problems({ from: ['10.0.0.0/8'] }), /^shards\.0\.proxyProtocol\.mode: /);
});

test('a running process does not take over another setting', () => {
  const [before, now] = [smallPlan(), smallPlan()];
  withProtocol({ mode: 'optional', from: ['10.0.0.0/8'] })(now);
  assert.deepEqual(checkReload(toPlan(before), toPlan(now), {}), [
    'proxyProtocol of shard a changed: restart the proxy for that',
  ]);
  assert.deepEqual(checkReload(toPlan(now), toPlan(now), {}), []);
});

test('the shards of a cluster, and their replica ports, have that of the cluster', async () => {
  const { withShards } = await import('../../../src/plan/cluster-shards.js');
  const plan = smallPlan();
  delete plan.shards;
  plan.cluster = {
    source: 'redis://127.0.0.1:7000',
    target: 'redis://127.0.0.1:7100',
    listen: 'redis://127.0.0.1:7200',
    replicas: { port: 7300 },
    proxyProtocol: { mode: 'required', from: ['10.0.0.0/8'] },
  };
  const read = toPlan(plan);
  const master = { id: 'a', address: { host: '127.0.0.1', port: 7000 }, slots: [[0, 16383]] as [number, number][] };
  const { shards } = withShards(read, read.cluster!, [
    { name: 'slots-0', slots: master.slots, source: master, target: null },
  ]);
  const wanted = { mode: 'required', from: ['10.0.0.0/8'] };
  assert.deepEqual([shards[0].listen.proxyProtocol, shards[0].replica?.listen.proxyProtocol], [wanted, wanted]);
});
