/** The migration, from two Redis shards to three KeyDB nodes, with what goes wrong on the way. */
import { setTimeout as sleep } from 'node:timers/promises';
import { sum } from '../../shadow-proxy/src/telemetry/snapshot.js';
import type { Hosts } from './hosts/hosts.js';
import type { Load } from './load.js';
import type { Operator } from './operator.js';
import { changedTasks, type Playbooks, type Recap } from './playbooks.js';
import { LOAD, NODES, PROXIES, RECEIVER_PORT } from './scene.js';
import type { Timeline } from './timeline.js';

export interface Stage {
  readonly hosts: Hosts;
  readonly playbooks: Playbooks;
  readonly operator: Operator;
  readonly load: Load;
  readonly timeline: Timeline;
  readonly signal: AbortSignal;
}

const AWAY_MS = 6_000;
/** For so long clients may wait when a zone is lost, or KeyDB fails over while it answers them. */
const ZONE_LOSS_MS = 10_000;
const FAILOVER_MS = 15_000;
const NO_CHANGE = 'changed nothing';

export async function standUp(stage: Stage, sources: string, checks: string): Promise<void> {
  const { playbooks, load, timeline } = stage;
  await playbooks.play(sources);
  timeline.say('two Redis shards run, each with users, a memory limit and an eviction policy of its own');
  const first = await playbooks.play('site');
  timeline.say(`site.yml: ${total(first)} changes`);
  const keys = await load.seed();
  timeline.say(`the Redis shards hold ${keys} keys`);
  unchanged(timeline, 'a second run of site.yml', await playbooks.play('site'));
  unchanged(
    timeline,
    'a run in check mode',
    await playbooks.play('site', {}, '--check', '--limit', `localhost,${NODES[1]},${PROXIES[0]},${LOAD}`),
  );
  const summary = (await playbooks.testinfra(checks)).trim().split('\n').at(-1) ?? '';
  timeline.check(
    'testinfra finds the hosts as they should be',
    / passed/.test(summary) && !/failed|error/.test(summary),
    summary,
  );
  await alert(stage);
}

/** Keeps what is posted to it in /run/alerts. */
const RECEIVER = `
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        with open('/run/alerts', 'ab') as file:
            file.write(self.rfile.read(int(self.headers['Content-Length'])))
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(('127.0.0.1', ${RECEIVER_PORT}), Handler).serve_forever()
`;

/** A test alert of the playbook, from Prometheus' Alertmanager to a receiver. */
async function alert({ hosts, playbooks, timeline }: Stage): Promise<void> {
  const start = 'cat > /run/receiver.py && systemd-run --quiet --unit=alert-receiver python3 /run/receiver.py';
  await hosts.ssh(LOAD, start, { input: RECEIVER });
  await playbooks.play('test-alert');
  const [, name = ''] = /"instance":"(test-\w+)"/.exec((await hosts.ssh(LOAD, 'cat /run/alerts')).stdout) ?? [];
  timeline.check('a test alert arrives at its receiver', name !== '', name);
}

/** off → shadow, under load; the target's primary loses its link, is killed, and hands over to a replica. */
export async function shadow(stage: Stage): Promise<void> {
  const { hosts, playbooks, operator, load, timeline } = stage;
  await load.start();
  timeline.say('ioredis and node-redis send through the proxies');
  await operator.promote('dualwrite');
  await operator.compare('backfill');
  timeline.say('every workload is written twice, and what was there before is copied');
  await operator.promote('shadow');
  timeline.say('every reply is compared');

  const primary = hosts.host(NODES[0]);
  await hosts.network.link(primary.index, 'down');
  timeline.say(`the link of ${primary.name}, which takes the writes, is away`);
  await sleep(AWAY_MS);
  await hosts.network.link(primary.index, 'up');
  timeline.say(`… and back: no key is suspect after ${await operator.certain()} s`);

  await hosts.ssh(primary.name, 'systemctl kill --kill-whom=main --signal=KILL keydb');
  await sleep(AWAY_MS);
  timeline.say(`${primary.name} is killed … no key is suspect after ${await operator.certain()} s`);
  const promoted = await primaryOf(hosts);
  timeline.check('the Sentinels have promoted a replica', promoted !== primary.name, `${promoted} is the primary now`);

  await playbooks.play('upgrade', { upgrade_restart: true });
  const next = await primaryOf(hosts);
  timeline.check(
    'upgrade.yml restarts one node at a time and hands the primary over',
    next !== promoted,
    `${next} is the primary now`,
  );
  timeline.say(`… no key is suspect after ${await operator.certain()} s`);
  await loseZone(stage);
  unchanged(timeline, 'a run of site.yml after both failovers', await playbooks.play('site'));
  await operator.again('after the outages');
  timeline.say('every workload has gone back to dualwrite and on to shadow: its evidence begins anew');
}

/** The hosts of the proxies that serve, and of the KeyDB node that takes the writes, lose power at once. */
async function loseZone(stage: Stage): Promise<void> {
  const { hosts, operator, load, timeline } = stage;
  const before = { proxies: await operator.serving(), node: await primaryOf(hosts) };
  load.mark();
  await Promise.all([...before.proxies, before.node].map((name) => hosts.powerOff(name)));
  await sleep(2 * ZONE_LOSS_MS);
  const after = { proxies: await operator.serving(), node: await primaryOf(hosts) };
  timeline.check(
    'a zone is lost: the standby proxies serve, and a replica is promoted',
    after.node !== before.node && after.proxies.every((name) => !before.proxies.includes(name)),
    `${[...before.proxies, before.node].join(', ')} are off; ${[...after.proxies, after.node].join(', ')} took over`,
  );
  checkSilence(stage, ZONE_LOSS_MS);
  for (const name of [...before.proxies, before.node]) await hosts.powerOn(name);
  timeline.say(`… the zone is back: no key is suspect after ${await operator.certain()} s`);
}

/** The KeyDB node that takes the writes is killed while it answers clients. */
async function failOver(stage: Stage, when: string): Promise<void> {
  const { hosts, operator, load, timeline } = stage;
  const before = await primaryOf(hosts);
  load.mark();
  await hosts.ssh(before, 'systemctl kill --kill-whom=main --signal=KILL keydb');
  await sleep(FAILOVER_MS);
  const after = await primaryOf(hosts);
  timeline.check(
    `the Sentinels promote a replica ${when}`,
    after !== before,
    `${before} is killed, ${after} took over`,
  );
  checkSilence(stage, FAILOVER_MS);
  if ((await operator.status()).some(({ frozen }) => frozen !== null)) {
    await operator.compare('accept --from-mirror --yes 1000000');
    timeline.say('the promoted node gets back from Redis what it lacks');
  }
  timeline.say(`… no key is suspect after ${await operator.certain()} s`);
}

function checkSilence({ load, timeline }: Stage, atMostMs: number): void {
  const { longestSilenceMs } = load.report!;
  timeline.check(`clients waited ${atMostMs / 1000} s at most`, longestSilenceMs <= atMostMs, `${longestSilenceMs} ms`);
}

/** shadow → live → complete; a replica dies, one workload goes back and forth. */
export async function live(stage: Stage): Promise<void> {
  const { hosts, playbooks, operator, timeline } = stage;
  await verify(stage, 'before the target answers');
  await operator.drill();
  timeline.say('going back is rehearsed');
  await operator.promote('live', { percent: 10 });
  await operator.promote('live', { percent: 100 });
  timeline.say('KeyDB answers every workload');

  const before = stage.load.report!.errors;
  const writer = await primaryOf(hosts);
  const replica = NODES.find((name) => name !== writer)!;
  await hosts.ssh(replica, 'systemctl stop keydb');
  timeline.say(`${replica}, a replica, is down`);
  await sleep(AWAY_MS);
  await hosts.ssh(replica, 'systemctl start keydb');
  timeline.check(
    'clients do not notice that a replica is down',
    stage.load.report!.errors === before,
    `${stage.load.report!.errors - before} errors`,
  );

  await playbooks.play('rollback', { rollback_workload: 'sessions', rollback_reason: 'the rehearsal' });
  const back = await stagesOf(operator, 'sessions');
  timeline.check(
    'rollback.yml takes one workload back',
    back.every((each) => each === 'shadow'),
    back.join(', '),
  );
  await operator.promote('live', { percent: 100, workloads: ['sessions'] });
  await operator.promote('rampdown');
  timeline.say('reads go to KeyDB alone; Redis is kept current');
  await failOver(stage, 'while KeyDB answers');
  await verify(stage, 'before the point of no return');
  await operator.promote('complete');
  timeline.say('complete: Redis is written no more');
  await failOver(stage, 'after the cutover');
}

/** Redis goes; every key of every node is compared with what the applications know. */
export async function retire({ playbooks, operator, load, timeline }: Stage): Promise<void> {
  await playbooks.play('retire-redis', { retire_redis: 'rehearsal' });
  timeline.say('Redis is stopped');
  await sleep(AWAY_MS);
  const shards = await operator.status();
  const different = shards.reduce((all, { mismatches }) => all + sum(mismatches), 0);
  const compared = shards.flatMap(({ workloads }) => workloads).reduce((all, each) => all + each.compared, 0);
  timeline.check('no reply differed', different === 0 && compared > 0, `${compared} compared, ${different} differed`);
  const { commands, errors, firstErrors, wrong } = await load.stop();
  const sent = Object.entries(commands).map(([library, count]) => `${library} ${count}`);
  timeline.check(
    'both libraries were answered to the end',
    sent.length === 2,
    `${sent.join(', ')}; ${errors} errors${errors ? ` (${Object.values(firstErrors).join('; ')})` : ''}`,
  );
  timeline.check(
    'no client read or counted anything wrong',
    wrong.length === 0,
    wrong.join('; ') || 'every reply was checked',
  );
  for (const node of NODES) {
    const { keys, differences } = await load.compare(node);
    timeline.check(
      `every key of ${node} is what the applications know`,
      keys > 0 && differences.length === 0,
      `${keys} keys${differences.length ? `; ${differences.join('; ')}` : ''}`,
    );
  }
}

async function verify({ operator, timeline }: Stage, when: string): Promise<void> {
  const codes = (await operator.compare('verify', [0, 1, 3])).map(({ code }) => code);
  timeline.check(
    `verify finds both sides equal ${when}`,
    codes.every((code) => code === 0),
    `exit codes ${codes.join(', ')}`,
  );
}

function unchanged(timeline: Timeline, what: string, recap: Recap): void {
  timeline.check(
    `${what} changes nothing`,
    total(recap) === 0,
    total(recap) === 0 ? NO_CHANGE : `changed: ${changedTasks(recap.output).join(', ')}`,
  );
}

const total = ({ changed }: Recap): number => sum(changed);

async function stagesOf(operator: Operator, workload: string): Promise<string[]> {
  return (await operator.status()).map(({ workloads }) => workloads.find(({ name }) => name === workload)!.stage);
}

/** The node that most Sentinels take for the primary. @throws {Error} where they do not agree */
async function primaryOf(hosts: Hosts): Promise<string> {
  const named = await Promise.all(
    NODES.map(async (name) => {
      // One without power has no vote.
      const answer = await hosts
        .ssh(name, `awk '/^sentinel monitor/ { print $4 }' /var/lib/keydb-sentinel/sentinel.conf`)
        .catch(() => null);
      return answer?.stdout.trim() ?? 'no answer';
    }),
  );
  const found = NODES.find(
    (name) => named.filter((each) => each === hosts.host(name).address).length * 2 > NODES.length,
  );
  if (found === undefined) throw new Error(`the Sentinels do not agree on the primary: ${named.join(', ')}`);
  return found;
}
