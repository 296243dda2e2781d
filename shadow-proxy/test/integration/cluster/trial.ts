/**
 * Random traffic of cluster clients while stages change, masters fail on both sides and a slot moves: in the end both
 * sides hold the same, and no reply differed without a reason.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestContext } from 'node:test';
import { moveSlot } from '../../../src/local/start-cluster.js';
import { hashSlot } from '../../../src/route/slot.js';
import { withClusterRig } from '../../support/cluster-move.js';
import type { ClusterRig, ClusterRigOptions } from '../../support/cluster-rig.js';
import { startRedisPy } from '../../support/redis-py.js';
import { until } from '../../support/shard.js';
import { openCluster, openRaw } from '../random/clients.js';
import { drive } from '../random/driver.js';

export interface ClusterTrial extends ClusterRigOptions {
  readonly durationMs: number;
  /** What happens meanwhile, in this order, at equal distances. */
  readonly events: readonly ((rig: ClusterRig, quiet: Quiet) => Promise<void>)[];
}

/** Runs `work` while no command is on its way. */
export type Quiet = (work: () => Promise<void>) => Promise<void>;

/** A cluster's failover is over before the proxy gives its master up. */
const PLAN = { default: { stage: 'shadow' }, limits: { downAfterMs: 15_000, drainMs: 5_000 } };
const CONNECTIONS = 16;
/** Hash tags: each is a slot of its own, and connections share them. */
const TAGS = Array.from({ length: 8 }, (_, i) => `{t${i}}:`);
const slotOf = (tag: string): number => hashSlot(Buffer.from(tag), 0, tag.length);
const shardOf = ({ plan }: ClusterRig, slot: number): number =>
  plan.shards.findIndex(({ slots }) => slots!.some(([first, last]) => first <= slot && slot <= last));

export async function clusterTrial(t: TestContext, { durationMs, events, ...options }: ClusterTrial): Promise<void> {
  const seed = Number(process.env.RANDOM_SEED ?? Math.floor(Math.random() * 2 ** 31));
  t.diagnostic(`seed ${seed}`);
  await withClusterRig({ plan: PLAN, ...options }, async (rig) => {
    const gate = new Gate();
    const python = await startRedisPy(rig.port, durationMs, seed, t);
    const tagOf = (number: number): string => TAGS[Math.floor(number / 2) % TAGS.length];
    const driving = drive({
      port: rig.port,
      seed,
      durationMs,
      connections: CONNECTIONS,
      databases: 1,
      barriers: false,
      reconnects: true,
      vanishing: 0.01,
      errorCodes: ['TRYAGAIN', 'MOVED', 'CLUSTERDOWN', 'LOADING', 'READONLY'],
      prefixesOf: (number) => [tagOf(number)],
      open: (number) => {
        const { port } = rig.plan.shards[shardOf(rig, slotOf(tagOf(number)))].listen;
        const login = { host: '127.0.0.1', protocol: (2 + (number % 4 > 1 ? 1 : 0)) as 2 | 3, user: null, db: 0 };
        return number % 2 === 0 ? openCluster({ ...login, port: rig.port }) : openRaw({ ...login, port });
      },
      between: () => gate.pass(),
    });
    for (const event of events) {
      await sleep(durationMs / (events.length + 1));
      log(`event ${event.name}`);
      await event(rig, (work) => gate.close(CONNECTIONS, work)).catch((error: Error) => {
        log(String(error.stack));
        throw error;
      });
      log('done');
    }
    const report = await driving;
    log(JSON.stringify(report.violations));
    const said = await python.ended;
    await until(
      () => rig.shards.every((shard) => shard.snapshot().workloads.every(({ suspect }) => suspect === null)),
      60_000,
      () => JSON.stringify(rig.shards.map((shard) => [shard.snapshot().frozen, shard.snapshot().workloads])),
    );
    await rig.settled(60_000);
    for (const job of await rig.run({ kind: 'verify' }))
      assert.deepEqual(
        [job.state, job.differences, job.failures],
        ['done', {}, []],
        (await rig.differences()).join('\n'),
      );
    const { pairs, mismatches, found } = rig.compared();
    // What a cluster's client sends again by itself, after an error or a lost connection, comes in another order.
    const wrong = report.violations.filter((each) => !/^connection \d*[02468] .*expected/.test(each));
    const { operations, lost } = report;
    t.diagnostic(JSON.stringify({ operations, lost, pairs, mismatches, redisPy: said }));
    assert.deepEqual(await rig.differences(), []);
    assert.deepEqual(mismatches, {}, JSON.stringify(found.slice(0, 5)));
    assert.deepEqual(wrong, []);
    assert.ok(report.operations > 5_000, `${report.operations} operations`);
  });
}

/** `TRIAL_LOG=1` shows how far it is. */
const log = (text: string): void =>
  void (process.env.TRIAL_LOG && process.stderr.write(`${new Date().toISOString()} ${text}\n`));

/** Lets connections pass one turn after the other, or holds them all. */
class Gate {
  #closed: Promise<void> | null = null;
  #waiting = 0;

  async pass(): Promise<void> {
    if (this.#closed === null) return;
    this.#waiting++;
    await this.#closed;
    this.#waiting--;
  }

  /** Runs `work` once `all` connections wait, or after 5 s with fewer: one may be reconnecting. */
  async close(all: number, work: () => Promise<void>): Promise<void> {
    let open: () => void = () => undefined;
    this.#closed = new Promise((resolve) => (open = resolve));
    const began = Date.now();
    while (this.#waiting < all && Date.now() < began + 5_000) await sleep(20);
    try {
      await work();
    } finally {
      this.#closed = null;
      open();
    }
  }
}

/** A master dies; what it had acknowledged is with its replica. */
export const failover =
  (side: 'source' | 'target') =>
  async (rig: ClusterRig, quiet: Quiet): Promise<void> => {
    const cluster = side === 'source' ? rig.source : rig.targetCluster!;
    const [victim] = cluster.masters;
    const masters = (await rig.mastersOf(side)).length;
    await quiet(async () => {
      await sleep(300);
      await victim.kill('SIGKILL');
    });
    await until(async () => (await rig.mastersOf(side)).length === masters, 20_000);
    await victim.start();
  };

export const stages =
  (...to: readonly ('shadow' | 'live')[]) =>
  async (rig: ClusterRig): Promise<void> => {
    for (const stage of to) {
      await until(
        async () =>
          rig.changeStage(stage).then(
            () => true,
            () => false,
          ),
        30_000,
      );
    }
  };

/** The slot of the first tag moves to another master while clients write; then the proxies start again. */
export async function reshard(rig: ClusterRig): Promise<void> {
  const slot = slotOf(TAGS[0]);
  const masters = await rig.mastersOf('source');
  const from = await rig.masterOfSlot('source', slot);
  const to = masters.find((each) => each !== from)!;
  log(`slot ${slot} from ${from.port} to ${to.port}`);
  await moveSlot(slot, from, to, masters, async () => {
    log('keys have moved');
    const shard = rig.shards[shardOf(rig, slot)];
    await until(() => shard.snapshot().movedSlots !== '', 5_000);
  });
  log('slot has moved');
  await sleep(1_000);
  await rig.drain();
  log('drained');
  await rig.serve();
}
