/**
 * A workload from off to complete, on evidence, with both clients at work all the time; and back.
 *
 * Needs real processes: `promote`, `rollback` and `rollback --offline` beside a proxy that runs, hangs or is killed.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import type { ShardEvidence } from '../../../src/stages/next-stage.js';
import { withServers } from '../../support/servers.js';
import { compareKeyspaces } from '../random/comparer.js';
import type { Ended } from './many-commands.js';
import { runCommand } from './process.js';
import { planFor, start, status, type Running } from './running.js';

const operator =
  ({ admin }: Running) =>
  (...args: string[]): Promise<Ended> =>
    runCommand(...args, '--admin', admin);

interface Work {
  readonly errors: Error[];
  /** Lets what is under way end, runs `body`, and goes on. */
  pause<T>(body: () => Promise<T>): Promise<T>;
  /** How much it added. */
  stop(): Promise<number>;
}

/** Both clients are at work between most requests of the proxy, and leave the cores to it and to the servers. */
const STEP_MS = 8;

/** Both clients, which read and write until they are stopped; each counts what it added, and no error passes. */
async function work(port: number): Promise<Work> {
  const errors: Error[] = [];
  const ioredis = new Redis(port, { maxRetriesPerRequest: 0 });
  const nodeRedis = createClient({ url: `redis://127.0.0.1:${port}` });
  for (const client of [ioredis, nodeRedis]) client.on('error', (error: Error) => errors.push(error));
  await nodeRedis.connect();
  let running = true;
  let added = 0;
  let busy = 0;
  let gate = Promise.resolve();
  const loop = async (step: (i: number) => Promise<unknown>): Promise<void> => {
    for (let i = 0; running; i++) {
      await gate;
      busy++;
      try {
        await step(i);
      } catch (error) {
        errors.push(error as Error);
      }
      busy--;
      await sleep(STEP_MS);
    }
  };
  const loops = [
    loop(async (i) => {
      await Promise.all([
        ioredis.incr('session:count').then(() => added++),
        ioredis.set(`session:${i % 50}`, `v${i}`, 'EX', 600),
        ioredis.get(`session:${(i * 7) % 50}`),
        ioredis.hset(`session:h:${i % 20}`, 'f', i),
      ]);
    }),
    loop(async (i) => {
      await Promise.all([
        nodeRedis.incr('session:count').then(() => added++),
        nodeRedis.get(`session:${i % 50}`),
        nodeRedis.hGetAll(`session:h:${i % 20}`),
        nodeRedis.zAdd('session:z', { score: i, value: `m${i % 30}` }),
      ]);
    }),
  ];
  return {
    errors,
    async pause(body) {
      let open = (): void => undefined;
      gate = new Promise((resolve) => (open = resolve));
      try {
        await until(() => Promise.resolve(busy === 0));
        return await body();
      } finally {
        open();
      }
    },
    async stop() {
      running = false;
      await Promise.all(loops);
      ioredis.disconnect();
      nodeRedis.destroy();
      return added;
    },
  };
}

/** Whether every gate of the sessions is open, on each shard. A program that asks would take a core of the clients. */
async function gatesAreOpen({ admin }: Running, except?: string): Promise<boolean> {
  const response = await fetch(`${admin}/api/evidence`);
  const { shards } = (await response.json()) as { shards: ShardEvidence[] };
  const next = shards.map(({ workloads }) => workloads.find(({ workload }) => workload === 'sessions')!);
  return next.every(({ gates }) => gates.every(({ name, answer }) => answer === 'yes' || name === except));
}

const GATES = { minCompared: 500, minMinutes: 1, maxP99Ratio: 100, maxAllowedShare: 1 };

test('the whole story: each step on its gates, a rollback, and no write is lost', async (t) => {
  await withServers(async ({ source, target }) => {
    const before = new Redis(source.port, { connectionName: 'exporter' });
    for (let i = 0; i < 200; i++) await before.set(`session:old:${i}`, `x${i}`);
    const plan = await planFor({ source, target }, (planned) => {
      Object.assign(planned, { gates: GATES });
    });
    const running = await start(t, plan);
    const tool = operator(running);
    const clients = await work(running.port);
    const stage = async (): Promise<string> => {
      const [{ workloads }] = await status(running.admin);
      return `${workloads[0].stage} ${workloads[0].percent}`;
    };
    const promoted = (...more: string[]): Promise<void> =>
      until(async () => (await gatesAreOpen(running)) && (await tool('promote', 'sessions', ...more)).code === 0);
    const equal = (): Promise<void> =>
      clients.pause(async () => {
        await until(async () => (await status(running.admin))[0].mirror.queuedEffects === 0);
        assert.deepEqual((await compareKeyspaces(source, target)).differences, [], `in stage ${await stage()}`);
      });

    // A client is connected to the source directly, bypassing the proxy.
    const closed = await tool('promote', 'sessions');
    assert.equal(closed.code, 1);
    assert.match(
      closed.stdout.replace(/[\s│]+/g, ' '),
      /NO bypass connected to the source directly, bypassing the proxy: exporter at 127\.0\.0\.1.*nothing was changed/,
    );
    assert.equal(await stage(), 'off 100');
    running.reload((planned) => Object.assign(planned, { knownClients: ['exporter'] }));
    await running.daemon.prints(/the plan was reloaded/);

    assert.equal((await tool('promote', 'sessions')).code, 0);
    assert.equal((await tool('promote', 'sessions')).code, 1, 'keys from before are not copied');
    assert.equal((await tool('backfill', '--workload', 'sessions')).code, 0);
    await promoted();
    assert.equal(await stage(), 'shadow 100');
    await equal();

    // What was not seen is unknown, and closes the gate.
    const unknown = await tool('promote', 'sessions', '--dry-run', '--json');
    const gates = (JSON.parse(unknown.stdout) as { gates: { name: string; answer: string }[] }[])[0].gates;
    assert.deepEqual(
      gates.filter(({ name }) => name === 'verify' || name === 'drill').map(({ answer }) => answer),
      ['unknown', 'unknown'],
    );
    assert.equal((await tool('verify', '--workload', 'sessions')).code, 0);
    await until(
      async () => (await gatesAreOpen(running, 'drill')) && (await tool('rollback', 'sessions', '--drill')).code === 0,
    );
    assert.equal(await stage(), 'shadow 100');

    for (const percent of ['live 1', 'live 10', 'live 50', 'live 100']) {
      await promoted();
      assert.equal(await stage(), percent);
      await equal();
    }
    const began = performance.now();
    const back = await tool('rollback', '--all', '--reason', 'to see it');
    assert.equal(back.code, 0, back.stderr);
    t.diagnostic(
      `rolled back in ${Math.round(performance.now() - began)} ms with the start of the program: ${back.stdout.trim()}`,
    );
    assert.equal(await stage(), 'shadow 100');
    await equal();

    // All of it at once is for those who say so.
    const whole = await tool('promote', 'sessions', '--percent', '100');
    assert.equal(whole.code, 1);
    assert.match(
      whole.stdout.replace(/[\s│]+/g, ' '),
      /NO steps 100 % of the keys requested, at most 1 % allowed in this step/,
    );
    assert.equal(await stage(), 'shadow 100');
    running.reload((planned) => Object.assign(planned, { gates: { ...GATES, steps: false } }));
    await running.daemon.prints(/the plan was reloaded[^]*the plan was reloaded/);
    await promoted('--percent', '100');
    await equal();
    await promoted();
    assert.equal(await stage(), 'rampdown 100');

    assert.equal((await tool('verify', '--workload', 'sessions')).code, 0);
    const added = await clients.stop();
    assert.deepEqual(clients.errors, []);
    assert.deepEqual((await compareKeyspaces(source, target)).differences, []);
    for (const server of [source, target]) {
      const direct = new Redis(server.port);
      const count = await direct.get('session:count');
      direct.disconnect();
      assert.equal(Number(count), added, 'no increment is lost, and none made twice');
    }

    // The point of no return is confirmed with the name of the migration.
    const warned = await tool('promote', 'sessions', '--force', '--reason', 'the test ends');
    assert.equal(warned.code, 2);
    assert.match(warned.stderr, /Point of no return/);
    assert.equal(
      (await tool('promote', 'sessions', '--force', '--reason', 'the test ends', '--point-of-no-return', 'sessions'))
        .code,
      2,
    );
    assert.equal(
      (await tool('promote', 'sessions', '--force', '--reason', 'the test ends', '--point-of-no-return', 'test')).code,
      0,
    );
    assert.equal(await stage(), 'complete 100');
    const none = await tool('rollback', 'sessions');
    assert.equal(none.code, 1);
    assert.match(none.stderr, /backfill in the other direction/);

    // What nobody names goes there, too, and the source is shut down: who was connected, and who comes, notices
    // nothing.
    for (const to of ['dualwrite', 'shadow', 'live', 'rampdown', 'complete']) {
      const { code, stderr } = await tool(
        'promote',
        'default',
        '--to',
        to,
        '--force',
        '--reason',
        'the test ends',
        ...(to === 'complete' ? ['--point-of-no-return', 'test'] : []),
      );
      assert.equal(code, 0, stderr);
      // It has no key: nothing was copied.
      if (to === 'dualwrite') assert.equal((await tool('backfill')).code, 3);
    }
    const after = await work(running.port);
    await source.kill('SIGTERM');
    const later = await work(running.port);
    // Clients work on without the source for so long.
    await sleep(500);
    const more = (await after.stop()) + (await later.stop());
    assert.deepEqual([...after.errors, ...later.errors], []);
    assert.ok(more > 0);
    const kept = new Redis(target.port);
    assert.equal(Number(await kept.get('session:count')), added + more);
    kept.disconnect();

    const history = await tool('history');
    assert.match(history.stdout, /sessions shadow → live 1 %, a drill, by \w+\n/);
    assert.match(history.stdout, /sessions live → shadow, rolled back, by \w+: to see it\n/);
    const lines = readFileSync(join(running.directory, 'state', 'a', 'history.jsonl'), 'utf8')
      .trim()
      .split('\n');
    const last = JSON.parse(lines.at(-1)!) as { reason: string; gates: { name: string; evidence: string }[] };
    assert.equal(last.reason, 'the test ends');
    assert.ok(last.gates.some(({ name, evidence }) => name === 'verify' && /keys/.test(evidence)));
    before.disconnect();
  });
});

test('several shards go together, or none does', async (t) => {
  await withServers(async (one) => {
    await withServers(async (two) => {
      const plan = await planFor(one);
      const second = await planFor(two);
      plan.shards.push({ ...second.shards[0], name: 'b' });
      const running = await start(t, plan);
      await running.daemon.prints(/"shard":"b".*"listening"/);
      const tool = operator(running);
      const stages = async (): Promise<string[]> =>
        (await status(running.admin)).map(({ workloads }) => workloads[0].stage);
      const beside = new Redis(two.source.port);
      await beside.ping();
      const refused = await tool('promote', 'sessions');
      assert.equal(refused.code, 1);
      assert.deepEqual(await stages(), ['off', 'off']);
      beside.disconnect();
      await until(async () => (await gatesAreOpen(running)) && (await tool('promote', 'sessions')).code === 0);
      assert.deepEqual(await stages(), ['dualwrite', 'dualwrite']);
      assert.equal((await tool('rollback', 'sessions', '--shard', 'b')).code, 0);
      assert.deepEqual(await stages(), ['dualwrite', 'off']);
      assert.equal((await tool('promote', 'sessions', '--force')).code, 1, 'a reason is asked for');
      assert.match(
        (await tool('promote', 'sessions', '--percent', '5')).stderr,
        /--percent is for stage live only, and "sessions" would move to/,
      );
    });
  });
});

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(200)) if (await holds()) return;
  throw new Error(`not so within 60 s: ${holds.toString()}`);
}

test('rollback --offline with a mistyped name is refused before it stops the proxy', async (t) => {
  await withServers(async ({ source, target }) => {
    const running = await start(t, await planFor({ source, target }));
    const args = ['rollback', 'sesions', '--offline', '--plan', running.file];
    const { code, stderr } = await runCommand(...args);
    assert.equal(code, 1);
    assert.match(stderr, /there is no workload "sesions".*sessions/);
    const client = running.connect();
    assert.equal(await client.set('session:1', 'v'), 'OK', 'the proxy serves as before');
    client.disconnect();
    assert.doesNotMatch(running.daemon.stdout, /lease/);
  });
});

for (const hangs of [true, false])
  test(`the emergency rollback without the admin HTTP, of a proxy that ${hangs ? 'hangs' : 'goes on'}: it is fenced, and nothing acknowledged is lost`, async (t) => {
    await withServers(async ({ source, target }) => {
      const plan = await planFor({ source, target }, (planned) =>
        Object.assign(planned.workloads[0], { stage: 'live' }),
      );
      const running = await start(t, plan);
      const offline = (...args: string[]): Promise<Ended> =>
        runCommand('rollback', '--all', '--offline', '--plan', running.file, ...args);
      const client = running.connect();
      const acknowledged = new Map<string, string>();
      const tried = new Map<string, string>();
      let hung = false;
      const writing = Promise.all(
        Array.from({ length: 8 }, async (_, of) => {
          for (let i = 0; !hung; i++) {
            const [key, value] = [`session:${of}:${i % 300}`, `v${i}`];
            tried.set(key, value);
            await client.set(key, value).then(
              () => acknowledged.set(key, value),
              () => sleep(10),
            );
          }
        }),
      );
      await until(async () => acknowledged.size > 1_000);
      if (hangs) running.daemon.signal('SIGSTOP');
      hung = hangs;
      // What was on its way when the proxy hung is answered, or never will be: no sign shows which.
      await sleep(300);
      const { code, stdout, stderr } = await offline('--reason', 'it hangs');
      assert.equal(code, 0, stderr);
      assert.match(
        stdout,
        /a: sessions live → shadow\n.*stopped the proxy that served it.*\d+ keys? with unconfirmed writes/,
      );
      hung = true;
      client.disconnect();
      await writing;
      running.daemon.signal('SIGCONT');
      assert.equal(await running.daemon.exit(), 1, 'what comes to itself again finds that it has the shard no more');
      assert.ok(acknowledged.size > 100, `${acknowledged.size} keys`);
      const direct = new Redis(source.port);
      const there = await direct.mget([...acknowledged.keys()]);
      direct.disconnect();
      // What was tried last may have run, unanswered.
      const lost = [...acknowledged].filter(([key, value], i) => there[i] !== value && there[i] !== tried.get(key));
      assert.deepEqual(lost, []);
      const again = await start(t, plan, running.directory);
      assert.equal((await status(again.admin))[0].workloads[0].stage, 'shadow');
      const nothing = await offline();
      assert.equal(nothing.code, 1);
      assert.match(nothing.stderr, /nothing to roll back/);
    });
  });

test('the commands that promote prints work as printed, one after the other, until only counting is left', async (t) => {
  await withServers(async (pair) => {
    const running = await start(
      t,
      await planFor(pair, (planned) => {
        planned.workloads = [{ name: 'sessions', keys: ['session:*'], stage: 'shadow' }];
        Object.assign(planned, { gates: GATES });
      }),
    );
    const client = running.connect();
    for (let i = 0; i < 50; i++) await client.set(`session:${i}`, i);
    const asked = ['promote', 'sessions', '--dry-run', '--plan', running.file];
    const printed = async (): Promise<string[]> => {
      const { stdout } = await runCommand(...asked);
      const wide = stdout.split('\n').filter((line) => /^[│├┌└]/.test(line) && [...line].length > 80);
      assert.deepEqual(wide, [], 'the table fits 80 columns');
      return [...stdout.matchAll(/^ {2}npx --no-install shadow-compare (.*)$/gm)].map(([, command]) => command!);
    };
    assert.deepEqual(await printed(), [`verify --workload sessions --plan ${running.file}`]);
    const verified = await runCommand(...(await printed())[0]!.split(' '));
    assert.equal(verified.code, 0, verified.stderr);
    assert.deepEqual(await printed(), [`rollback sessions --drill --plan ${running.file}`]);
    const drilled = await runCommand(...(await printed())[0]!.split(' '));
    assert.match(drilled.stdout, /^a: sessions shadow → live 1 % .*\na: sessions live 1 % → shadow /, drilled.stderr);
    assert.equal(drilled.code, 0);
    assert.deepEqual(await printed(), []);
  });
});

test('promote says when a gate that counts will open: unknown at first, then from the rate that is measured', async (t) => {
  await withServers(async (pair) => {
    const minCompared = 1_000_000;
    const running = await start(
      t,
      await planFor(pair, (planned) => {
        planned.workloads = [{ name: 'sessions', keys: ['session:*'], stage: 'shadow' }];
        Object.assign(planned, { gates: { ...GATES, minCompared } });
      }),
    );
    const client = running.connect();
    const tool = operator(running);
    const printed = async (): Promise<string> => {
      const { stdout, code } = await tool('promote', 'sessions', '--dry-run');
      assert.equal(code, 1);
      const text = stdout.replace(/[\s│]+/g, ' ');
      return /NO compared (.*?) ├/.exec(text)![1]!;
    };
    // Whether it was measured for 5 s yet or not.
    assert.match(await printed(), /^0 of 1,000,000 pairs of replies; time left unknown: /);
    await client.set('session:1', 'x');
    const until = Date.now() + 7_000;
    while (Date.now() < until) {
      await Promise.all([client.get('session:1'), client.get('session:1')]);
      await sleep(10);
    }
    const [, compared, hours, perSecond] =
      /^([\d,]+) of .*; about (?:(\d+) h .*|\d+ min) .*\(([\d,]+) per second\)$/.exec(await printed())!;
    assert.ok(Number(perSecond) > 20 && Number(perSecond) <= 200, `${perSecond} per second of at most 200 sent`);
    const left = (minCompared - Number(compared!.replace(',', ''))) / Number(perSecond) / 3_600;
    assert.ok(Math.abs(left - Number(hours)) < 1.1, `${hours} h told, ${left} h by ${compared} and ${perSecond}`);
  });
});
