/**
 * BullMQ, which leans on Lua, blocking commands and streams, at work through every change of stage: no job is lost, and
 * none runs twice.
 *
 * Needs real servers: the Lua scripts, blocking commands and streams that BullMQ sends.
 */
import assert from 'node:assert/strict';
import type { EventEmitter } from 'node:events';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { compareKeyspaces } from '../random/comparer.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { runProgram } from './process.js';
import { planFor, start, status } from './running.js';
import { needs } from '../../support/needs.js';

interface Job {
  readonly name: string;
  getChildrenValues(): Promise<object>;
}

/** A queue, a worker or a producer of flows; of BullMQ's own types, what is used here. */
interface Part extends EventEmitter {
  add(...args: unknown[]): Promise<unknown>;
  addBulk(jobs: readonly object[]): Promise<unknown>;
  getJobCounts(...states: string[]): Promise<Record<string, number>>;
  close(): Promise<void>;
  disconnect(): Promise<void>;
}
type PartClass = new (...args: unknown[]) => Part;
type BullMQ = Readonly<Record<'FlowProducer' | 'Queue' | 'Worker', PartClass>>;

/** Not a dependency of the kit: its own has no builds for every machine. */
async function bullmq(t: TestContext): Promise<BullMQ | null> {
  const name = 'bullmq';
  const found = (await import(name).catch(() => null)) as BullMQ | null;
  if (found === null) t.skip('BullMQ is missing: npm install --no-save bullmq');
  return found;
}

/** A queue's keys lie in one slot, as BullMQ wants it of a cluster: `live` takes them at one percentage together. */
const PREFIX = '{jobs}';
/** How long each stage is worked in. */
const STAGE_MS = 2_500;
const CONCURRENCY = 8;

/** Adds jobs of every kind until it is stopped, and counts how often each has run. */
function produce({ FlowProducer, Queue, Worker }: BullMQ, port: number) {
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
  const errors: string[] = [];
  const queue = new Queue('work', { prefix: PREFIX, connection });
  const flows = new FlowProducer({ prefix: PREFIX, connection });
  const runs = new Map<string, number>();
  const wanted = new Map<string, number>();
  const run = async (job: Job): Promise<string> => {
    const name = job.name;
    runs.set(name, (runs.get(name) ?? 0) + 1);
    await sleep(Math.random() * 10);
    if (name.startsWith('again') && runs.get(name) === 1) throw new Error('the first attempt fails, as wanted');
    if (name.startsWith('parent')) assert.equal(Object.keys(await job.getChildrenValues()).length, 3);
    return name;
  };
  const workers = [1, 2].map(() => new Worker('work', run, { prefix: PREFIX, connection, concurrency: CONCURRENCY }));
  const emitters: EventEmitter[] = [queue, flows, ...workers];
  for (const each of emitters) each.on('error', (error) => errors.push(String(error)));
  let running = true;
  const add = async (): Promise<void> => {
    for (let i = 0; running; i++) {
      const want = (name: string, times = 1): string => (wanted.set(name, times), name);
      await queue.addBulk([0, 1, 2, 3].map((n) => ({ name: want(`plain-${i}-${n}`), data: { i } })));
      await queue.add(want(`later-${i}`), {}, { delay: 300 });
      await queue.add(want(`again-${i}`, 2), {}, { attempts: 3, backoff: { type: 'fixed', delay: 50 } });
      await queue.add(want(`urgent-${i}`), {}, { priority: 1 + (i % 5), removeOnComplete: true });
      await flows.add({
        name: want(`parent-${i}`),
        queueName: 'work',
        children: [0, 1, 2].map((n) => ({ name: want(`child-${i}-${n}`), queueName: 'work' })),
      });
      await sleep(20);
    }
  };
  const adding = add();
  return {
    errors,
    runs,
    wanted,
    queue,
    async finish(): Promise<void> {
      running = false;
      await adding;
      const done = (): boolean => [...wanted].every(([name, times]) => (runs.get(name) ?? 0) >= times);
      await until(
        async () =>
          done() &&
          Object.values(
            await queue.getJobCounts('active', 'waiting', 'delayed', 'prioritized', 'waiting-children'),
          ).every((count) => count === 0),
        30_000,
      );
    },
    async close(): Promise<void> {
      running = false;
      await Promise.all(workers.map((worker) => worker.close()));
      await queue.close();
      await flows.close();
    },
    /** Disconnects where the proxy may have ended. */
    async abandon(): Promise<void> {
      running = false;
      await Promise.all([...workers, queue, flows].map((each) => each.disconnect().catch(() => undefined)));
    },
  };
}

test('BullMQ through every change of stage, there and back: no job is lost, none runs twice', async (t) => {
  const library = await bullmq(t);
  if (library === null || !(await needs(t, 'keydb'))) return;
  await withServers(async ({ source, target }) => {
    const plan = await planFor({ source, target }, (planned) =>
      Object.assign(planned, { workloads: [{ name: 'jobs', keys: [`${PREFIX}:*`], stage: 'off' }] }),
    );
    const running = await start(t, plan);
    let refusals = 0;
    /**
     * Keys that scripts write without declaring them are suspects for a moment, again and again: a command that is
     * refused for that is tried again.
     */
    const tool = async (...args: string[]): Promise<void> => {
      for (let left = 10; ; left--) {
        const { code, stdout, stderr } = await runProgram(t, 'shadow-compare', [...args, '--admin', running.admin]);
        if (code === 0) return;
        assert.ok(left > 0 && /is not clean: \d+ suspect keys?/.test(stderr), `${args.join(' ')}: ${stdout}${stderr}`);
        refusals++;
      }
    };
    const forced = ['--force', '--reason', 'BullMQ works on'];
    const bull = produce(library, running.port);
    t.after(() => bull.abandon());
    const at: string[] = [];
    const work = async (): Promise<void> => {
      const [{ workloads }] = await status(running.admin);
      at.push(`${workloads[0].stage} ${workloads[0].percent}: ${bull.runs.size} jobs`);
      await sleep(STAGE_MS);
    };
    await work();
    await tool('promote', 'jobs', ...forced);
    await tool('backfill', '--workload', 'jobs');
    await work();
    await tool('promote', 'jobs', ...forced);
    await work();
    for (const percent of ['10', '100']) {
      await tool('promote', 'jobs', '--percent', percent, ...forced);
      await work();
    }
    await tool('rollback', 'jobs');
    await work();
    await tool('promote', 'jobs', '--percent', '100', ...forced);
    await work();
    await tool('promote', 'jobs', ...forced);
    await work();
    await tool('rollback', 'jobs', '--reason', 'from rampdown, too');
    await work();
    await tool('promote', 'jobs', '--percent', '100', ...forced);
    await tool('promote', 'jobs', ...forced);
    await work();
    await bull.finish();
    t.diagnostic(`${at.join(', ')}; refused for keys in doubt, and asked again: ${refusals}`);
    assert.deepEqual(bull.errors, []);
    assert.deepEqual(
      [...bull.runs].filter(([name, times]) => times !== bull.wanted.get(name)),
      [],
      'each ran as often as wanted',
    );
    assert.deepEqual(
      [...bull.wanted.keys()].filter((name) => !bull.runs.has(name)),
      [],
    );
    const [{ workloads, mismatches }] = await status(running.admin);
    assert.deepEqual([workloads[0].stage, mismatches], ['rampdown', {}]);
    await until(
      async () =>
        (await status(running.admin))[0].mirror.queuedEffects === 0 &&
        (await status(running.admin))[0].suspects.total === 0,
    );
    // Its workers renew what they wait with: they are stopped for the comparison.
    await bull.close();
    const { differences, keys } = await compareKeyspaces(source, target);
    assert.ok(keys > 1_000);
    assert.deepEqual(differences, []);

    const last = produce(library, running.port);
    t.after(() => last.abandon());
    await tool('promote', 'jobs', ...forced, '--point-of-no-return', 'test');
    // Jobs run on in the last stage for so long.
    await sleep(STAGE_MS);
    await last.finish();
    assert.deepEqual(last.errors, []);
    assert.deepEqual(
      [...last.runs].filter(([name, times]) => times !== last.wanted.get(name)),
      [],
    );
    await last.close();
  });
});
