/**
 * Every command that gates, the status page, `status`, the log, refusals and the pages of alerts name as the next step
 * is run in the state in which it is named, by the real program against a real proxy: it is accepted, and answers or
 * changes something.
 *
 * Needs real processes: each command that the product prints, typed into the real program beside a running proxy.
 */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { renderShard } from '../../../src/cli/status.js';
import { Relay } from '../../../src/local/relay.js';
import { attentionOf } from '../../../src/page/attention.js';
import type { Stage } from '../../../src/route/stage.js';
import type { ShardEvidence } from '../../../src/stages/next-stage.js';
import type { PlanObject } from '../../support/plans.js';
import { redisSince, targetHas, withServers, type Pair } from '../../support/servers.js';
import { moveRequest } from '../../support/move.js';
import { until } from '../../support/shard.js';
import { tap } from '../../support/taps.js';
import { textOf } from '../docs/documented.js';
import { Program, runCommand } from './process.js';
import { planFor, start, status } from './running.js';

const GATES = { minCompared: 1, minMinutes: 0.01, maxP99Ratio: 10_000 };
/** Does not change with the state: it is run once. */
const STATUS = /^status( --watch)?$/;
/** What moves a workload is run behind the rest: the rest is named in the state before. */
const MOVES = /^(stage|promote|rollback)\b(?!.*--(drill|dry-run))/;

const wordsOf = (command: string): string[] =>
  command.match(/'[^']*'|\S+/g)!.map((word) => word.replace(/^'(.*)'$/, '$1'));

/** What may be asked of a proxy in one state. */
class Scene {
  readonly named: string[] = [];
  /** So much of the log was read. */
  #read = 0;

  private constructor(
    readonly t: TestContext,
    readonly servers: Pair,
    readonly toTarget: Relay,
    readonly running: Awaited<ReturnType<typeof start>>,
  ) {}

  static async open(t: TestContext, servers: Pair, change: (plan: PlanObject) => void): Promise<Scene> {
    const toTarget = await Relay.start(servers.target);
    t.after(() => toTarget.close());
    const plan = await planFor({ source: servers.source, target: toTarget }, (planned) => {
      Object.assign(planned, { gates: GATES, knownClients: ['127.0.0.1'], limits: { downAfterMs: 500 } });
      change(planned);
    });
    return new Scene(t, servers, toTarget, await start(t, plan, undefined, ['--first-start']));
  }

  direct(side: keyof Pair): Redis {
    const client = new Redis(this.servers[side].url);
    client.on('error', () => undefined);
    this.t.after(() => client.disconnect());
    return client;
  }

  async snapshot(): Promise<Awaited<ReturnType<typeof status>>[0]> {
    return (await status(this.running.admin))[0];
  }

  async evidence(): Promise<readonly ShardEvidence[]> {
    const response = await fetch(`${this.running.admin}/api/evidence`);
    return ((await response.json()) as { shards: ShardEvidence[] }).shards;
  }

  run(...args: string[]): ReturnType<typeof runCommand> {
    return runCommand(...args, '--plan', this.running.file);
  }

  /** To the next stage, or back, whatever the gates say. */
  async moved(stage: Stage): Promise<void> {
    const [now] = (await this.snapshot()).workloads;
    if (now.stage === stage && now.percent === 100) return;
    const [path, body] = moveRequest('sessions', now.stage, stage, { lose: true });
    const response = await fetch(`${this.running.admin}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, ...(stage === 'complete' && { pointOfNoReturn: 'test' }) }),
    });
    assert.equal(response.status, 200, await response.text());
  }

  async copied(): Promise<void> {
    await until(async () => {
      const { workloads, suspects } = await this.snapshot();
      return workloads[0].suspect === null && suspects.total === 0;
    }, 30_000);
  }

  async outage(): Promise<void> {
    await until(async () => (await this.snapshot()).outage !== null, 30_000);
  }

  /** The commands that are named now, by who names them. */
  async names(): Promise<Map<string, string>> {
    const shards = await this.evidence();
    const snapshot = await this.snapshot();
    const { file, daemon } = this.running;
    const logged = daemon.stdout.slice(this.#read);
    this.#read = daemon.stdout.length;
    return new Map([
      ...commandsIn(renderShard(snapshot, { plan: file })).map((command) => [command, 'status'] as const),
      ...[...logged.matchAll(/: shadow-compare ([^"]*)"/g)].map(([, command]) => [command, 'the log'] as const),
      ...attentionOf(snapshot).flatMap(({ command, text, runbook }) => [
        ...(command === undefined ? [] : [[command, `page: ${text}`] as const]),
        ...diagnosisOf(runbook).map((each) => [each, `runbook ${runbook}`] as const),
      ]),
      ...shards.flatMap(({ workloads }) =>
        workloads.flatMap(({ workload, gates }) =>
          gates.flatMap(({ command, name }) =>
            command === undefined ? [] : [[command, `gate ${name} of ${workload}`] as const],
          ),
        ),
      ),
    ]);
  }

  /** Runs what is named in this state, which has this command in it. @returns the commands */
  async follows(state: string, wanted?: string): Promise<string[]> {
    const named = await this.names();
    assert.ok(
      wanted === undefined || named.has(wanted),
      `${state}: ${wanted} is not in ${[...named].map((each) => each.join(' by ')).join('; ')}`,
    );
    const commands = [...named.keys()].sort((a, b) => Number(MOVES.test(a)) - Number(MOVES.test(b)));
    for (const command of commands)
      if (!STATUS.test(command) && !/[A-Z]{4}/.test(command))
        await this.accepted(command, `in ${state}, ${named.get(command)} names: ${command}`);
    return commands;
  }

  async accepted(command: string, what: string): Promise<void> {
    this.named.push(command);
    const { code, stdout, stderr } = await this.run(...wordsOf(command));
    // A server that is down is what this question is about.
    if (command.startsWith('ask ') && code === 3)
      return assert.match(stderr, /ECONN|did not answer|closed the conn/, what);
    // 1 is a finding, such as lost keys. A refusal has its reason on standard error, and prints no answer.
    assert.ok(
      (code === 0 || code === 1) && stdout !== '' && !/refused|is in (off|complete)|frozen:/.test(stderr),
      `${what}\n${code}\n${stdout}\n${stderr}`,
    );
  }

  /** Runs what is refused, and then what the refusal names. @returns standard error, and the commands */
  async refused(...args: string[]): Promise<{ stderr: string; next: string[] }> {
    const { code, stderr } = await this.run(...args);
    assert.equal(code, 1, stderr);
    assert.doesNotMatch(stderr, /[{}]/, 'a refusal is for people');
    const next = commandsIn(stderr);
    for (const command of next) await this.accepted(command, `${args.join(' ')} was refused:\n${stderr}`);
    return { stderr, next };
  }
}

/** Each stands in a line of its own, whole. */
const commandsIn = (text: string): string[] =>
  text
    .split('\n')
    .flatMap((line) => /^ {2}npx --no-install shadow-compare (.*?) --plan \S+$/.exec(line)?.slice(1, 2) ?? []);

/** What the page of an alert has an operator run first. */
const diagnosisOf = (runbook: string | undefined): string[] =>
  runbook === undefined
    ? []
    : [
        ...textOf(`runbooks/${runbook}.md`)
          .split('## Mitigation')[0]
          .matchAll(/^npx --no-install shadow-compare (.*) --plan migration\.yaml$/gm),
      ].map(([, command]) => command.replace('NAME', 'sessions'));

/** A proxy of its own for each, side by side: they wait for servers more than they compute. */
function scene(
  name: string,
  plan: { readonly stage?: Stage; readonly failover?: string; readonly everything?: boolean },
  play: (scene: Scene, client: Redis) => Promise<void>,
  before: (servers: Pair) => Promise<void> = () => Promise.resolve(),
): void {
  test(name, (t) =>
    withServers(async (servers) => {
      await before(servers);
      const { stage, failover = 'manual', everything = false } = plan;
      const workloads = [{ name: 'sessions', keys: ['session:*'], stage }];
      const opened = await Scene.open(t, servers, (planned) =>
        Object.assign(planned, { failover, workloads, ...(everything && { default: { stage } }) }),
      );
      await play(opened, opened.running.connect());
      t.diagnostic(`${name}: run as they were named: ${[...new Set(opened.named)].sort().join('; ')}`);
    }),
  );
}

async function foreignKey({ target }: Pair): Promise<void> {
  const client = new Redis(target.url);
  await client.set('session:foreign', 'v');
  client.disconnect();
}

/** Before the proxy begins: else these are writes that bypass it. */
async function sessions({ source }: Pair): Promise<void> {
  const client = new Redis(source.url);
  for (let i = 0; i < 50; i++) await client.set(`session:${i}`, `v${i}`);
  client.disconnect();
}

describe('every command that is named as the next step is accepted', { concurrency: 3 }, () => {
  scene(
    'from off to complete, with differences, mismatches and new errors',
    {},
    async (scene, client) => {
      assert.deepEqual((await scene.refused('backfill')).next, ['promote sessions --dry-run']);
      await scene.moved('dualwrite');
      await scene.follows('dualwrite, nothing copied', 'backfill --workload sessions');
      await scene.copied();
      await scene.follows('dualwrite, copied');
      await scene.moved('shadow');

      await client.get('session:1');
      await scene.follows('shadow');
      await scene.direct('target').set('session:1', 'another value');
      assert.equal((await scene.run('verify', '--workload', 'sessions')).code, 1);
      await scene.follows('shadow, with differences', 'verify --workload sessions --repair');
      await scene.follows('shadow, repaired', 'rollback sessions --drill');
      await scene.direct('target').set('session:2', 'another value');
      await client.get('session:2');
      await until(async () => (await scene.snapshot()).workloads[0].mismatches > 0, 30_000);
      await scene.follows('shadow, with a mismatch', 'verify --workload sessions');

      await scene.copied();
      await scene.moved('live');
      const named = await scene.follows('live, with a mismatch', 'rollback sessions');
      assert.deepEqual(
        named.filter((command) => command.includes('--drill')),
        [],
      );
      await scene.moved('live');
      if ((await redisSince(7, 0)) && !(await targetHas('redis', '7.0'))) {
        await assert.rejects(client.call('LMPOP', '1', 'session:list', 'LEFT'), /ERR/);
        await scene.follows('live, with errors that the source would not give', 'rollback sessions');
        await scene.moved('live');
      }
      await scene.moved('rampdown');
      await scene.follows('rampdown, with a mismatch', 'rollback sessions');
      await scene.moved('live');
      await scene.moved('rampdown');
      await scene.moved('complete');
      const last = await scene.follows('complete');
      assert.ok(
        last.every((command) => /^(status|guard)\b/.test(command)),
        last.join(),
      );
      for (const args of [
        ['backfill', '--workload', 'sessions'],
        ['rollback', 'sessions'],
        ['promote', 'sessions'],
      ])
        assert.deepEqual((await scene.refused(...args)).next, [], args.join(' '));
      await scene.accepted('status', 'it is named in each state');
      const watching = new Program(scene.t, 'shadow-compare', ['status', '--watch', '--plan', scene.running.file]);
      await watching.prints(/shard a/);
      watching.signal('SIGINT');
      await watching.exit();
    },
    sessions,
  );

  scene('while writes bypass the proxy', {}, async (scene, client) => {
    const source = scene.direct('source');
    const bypassed = (): Promise<void> =>
      until(async () => {
        await source.set('session:bypassing', Date.now());
        return (await scene.evidence())[0].workloads[0].gates.some(
          ({ name, answer }) => name === 'bypass' && answer === 'no',
        );
      }, 60_000);
    await client.set('session:1', 'v');
    await bypassed();
    assert.deepEqual(await scene.follows('off'), [], 'a copy that is still to come takes these writes along');
    await scene.moved('dualwrite');
    await scene.follows('dualwrite, nothing copied', 'backfill --workload sessions');
    await scene.copied();
    await scene.follows('dualwrite, copied', 'verify --workload sessions --repair');
  });

  scene('behind a backfill that has failed', { stage: 'dualwrite' }, async (scene, client) => {
    await client.set('session:1', 'v');
    await scene.servers.target.kill('SIGKILL');
    await until(async () => (await scene.run('backfill', '--workload', 'sessions')).code === 1, 30_000);
    assert.equal((await scene.snapshot()).job?.state, 'failed');
    await scene.servers.target.start();
    await until(async () => (await scene.snapshot()).mirror.connected, 30_000);
    await scene.follows('dualwrite, with a failed job', 'backfill --workload sessions');
    await scene.copied();
  });

  scene('while repairs are frozen', { stage: 'shadow' }, async (scene, client) => {
    await client.set('session:1', 'v');
    await scene.servers.source.restart();
    await until(async () => {
      const again = scene.running.connect();
      return (await again.set('session:0', 'new').catch(() => null)) === 'OK';
    }, 30_000);
    await until(async () => (await scene.snapshot()).frozen !== null, 30_000);
    // What the log has named was named while the source was down.
    await scene.names();
    const named = await scene.follows('frozen', 'accept --dry-run');
    assert.ok(!named.some((command) => /backfill|--repair/.test(command)), named.join());
    assert.deepEqual((await scene.refused('backfill')).next, ['accept --dry-run']);
    assert.deepEqual(
      (await scene.refused('promote', 'sessions', '--to', 'live', '--percent', '100', '--force', '--reason', 'now'))
        .next,
      ['accept --dry-run'],
    );
    // The way to keep the data of the mirror is named with places to fill in.
    const keep = '--to live --percent 100 --force --force-suspects --reason';
    assert.ok(named.includes(`promote WORKLOAD ${keep} REASON`));
    await scene.accepted(`promote sessions ${keep} now`, 'frozen');
    assert.equal((await scene.snapshot()).workloads[0].stage, 'live');
  });

  scene('while the source is down, in shadow', { stage: 'shadow' }, async (scene, client) => {
    await client.set('session:1', 'v');
    await scene.servers.source.kill('SIGKILL');
    await scene.outage();
    const reason = "--reason 'the source is down'";
    await scene.follows('an outage', `promote sessions --to live --percent 100 --force ${reason}`);
    const { stage, percent } = (await scene.snapshot()).workloads[0];
    assert.deepEqual([stage, percent], ['live', 100]);
    assert.equal(await client.get('session:1'), 'v');
  });

  scene('while the source is down, in dualwrite: in two steps', { stage: 'dualwrite' }, async (scene, client) => {
    await client.set('session:1', 'v');
    await scene.servers.source.kill('SIGKILL');
    await scene.outage();
    await scene.follows('an outage', "promote sessions --to shadow --force --reason 'the source is down'");
    await until(
      async () => (await scene.snapshot()).outage?.workloads[0].instead?.command.includes('--to live') ?? false,
    );
    await scene.follows(
      'an outage, moved to shadow',
      "promote sessions --to live --percent 100 --force --reason 'the source is down'",
    );
    assert.equal(await client.get('session:1'), 'v');
  });

  scene('while the source is down, and the mirror lacks writes', { stage: 'shadow' }, async (scene, client) => {
    await client.sadd('session:set', '1', '2', '3');
    await until(async () => (await scene.direct('target').scard('session:set')) === 3);
    // Only the authority knows what the script did, and its copy is not confirmed before the authority is lost.
    const taps = tap(scene.toTarget);
    scene.toTarget.hold('up', 'down');
    await client.eval("return redis.call('SPOP', KEYS[1], 1)", 1, 'session:set');
    // What was not sent yet would be sent again, and nothing be lost.
    await until(() => taps.some(({ sent }) => sent.some((each) => /^(RESTORE|SREM) session:set /.test(each))));
    await scene.servers.source.kill('SIGKILL');
    for (const link of scene.toTarget.links) link.cut();
    scene.toTarget.release();
    await scene.outage();
    const lose =
      "promote sessions --to live --percent 100 --force --force-suspects --reason 'these writes may be lost'";
    assert.ok((await scene.names()).has(lose));
    const { stderr, next } = await scene.refused(
      'promote',
      'sessions',
      '--to',
      'live',
      '--percent',
      '100',
      '--force',
      '--reason',
      'now',
    );
    assert.match(stderr, /is not clean: 1 suspect key\. .*\n {2}session:<.*> \(.*\)\nNext:\n/);
    assert.deepEqual(next, [lose]);
    assert.equal((await scene.snapshot()).workloads[0].stage, 'live');
  });

  scene('while the target is down, in live', { stage: 'live' }, async (scene, client) => {
    await client.set('session:1', 'v');
    await until(async () => (await scene.direct('source').get('session:1')) === 'v');
    await scene.servers.target.kill('SIGKILL');
    await scene.outage();
    await scene.follows('an outage', 'rollback sessions');
    assert.equal((await scene.snapshot()).workloads[0].stage, 'shadow');
    assert.equal(await client.get('session:1'), 'v');
  });

  scene(
    'where the target has keys at the first start',
    { stage: 'dualwrite' },
    async (scene) => {
      assert.equal((await scene.snapshot()).workloads[0].stage, 'off');
      assert.ok((await scene.names()).has('promote sessions'), 'the log names what to run when that is decided');
      const { code, stdout } = await scene.run('promote', 'sessions');
      assert.equal(code, 1);
      assert.match(stdout.replace(/\s+/g, ' '), /1 keys of this workload are on the target .*--overwrite/);
      const forced = await scene.run('promote', 'sessions', '--force', '--reason', 'the test');
      assert.equal(forced.code, 1, 'force does not open the gate target');
      const asked = await scene.run('promote', 'sessions', '--overwrite', '--force', '--reason', 'the test');
      assert.deepEqual([asked.code, /--yes 1$/m.test(asked.stderr)], [2, true], asked.stderr);
      await scene.accepted(
        "promote sessions --overwrite --yes 1 --force --reason 'the test'",
        'the refusal asks for it',
      );
      assert.equal((await scene.snapshot()).workloads[0].stage, 'dualwrite');
    },
    foreignKey,
  );

  scene(
    'where a client gets an error for keys that the proxy did not write',
    { stage: 'live', everything: true },
    async (scene, client) => {
      const error = await client.call('FLUSHALL').then(
        () => '',
        ({ message }: Error) => message,
      );
      const [, command = ''] = /\(shadow-compare (\S+) lists them\)$/.exec(error) ?? [];
      assert.equal(command, 'verify', error);
      await scene.accepted(command, error);
    },
    foreignKey,
  );
});
