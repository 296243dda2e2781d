/**
 * What applications do with packages that run scripts: `node script-work.js PACKAGE FOLDER PORT SECONDS`. Prints one
 * line of JSON: how often each kind of work was done.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

interface Given {
  /** Loads a package of the folder. */
  readonly load: <T>(name: string) => T;
  readonly port: number;
  /** Unix ms. */
  readonly until: number;
  done(what: string): void;
}

type Work = (given: Given) => Promise<void>;
type Processor = (job: { progress?(value: number): unknown; updateProgress?(value: number): unknown }) => Promise<void>;

interface Job {
  readonly id: string;
}

interface BullQueue {
  process(concurrency: number, processor: Processor): unknown;
  add(data: object, options?: object): Promise<Job>;
  getJob(id: string): Promise<unknown>;
  getJobCounts(): Promise<unknown>;
  getCompleted(start: number, end: number): Promise<unknown>;
  on(event: string, then: () => void): void;
  close(): Promise<void>;
}

const PAUSE_MS = 10;

async function bull({ load, port, until, done }: Given): Promise<void> {
  const Queue = load<new (name: string, options: object) => BullQueue>('bull');
  const redis = { host: '127.0.0.1', port };
  const queue = new Queue('mail', { redis, limiter: { max: 200, duration: 1_000 } });
  queue.on('completed', () => done('completed'));
  void queue.process(4, async (job) => {
    await job.progress?.(50);
    await sleep(5);
  });
  for (let i = 0; Date.now() < until; i++) {
    const { id } = await queue.add({ i }, i % 4 === 0 ? { delay: 50 } : { removeOnComplete: i % 2 === 0 });
    await queue.getJob(id);
    await queue.getJobCounts();
    if (i % 10 === 0) await queue.getCompleted(0, 5);
    done('added');
    await sleep(PAUSE_MS);
  }
  await queue.close();
}

interface BullmqQueue {
  add(name: string, data: object, options?: object): Promise<Job>;
  getJob(id: string): Promise<unknown>;
  getJobCounts(): Promise<unknown>;
  close(): Promise<void>;
}

interface BullmqWorker {
  on(event: string, then: () => void): void;
  close(force?: boolean): Promise<void>;
}

async function bullmq({ load, port, until, done }: Given): Promise<void> {
  const { Queue, Worker } = load<{
    Queue: new (name: string, options: object) => BullmqQueue;
    Worker: new (name: string, processor: Processor, options: object) => BullmqWorker;
  }>('bullmq');
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
  const queue = new Queue('mail', { connection });
  const limiter = { max: 200, duration: 1_000 };
  const work: Processor = async (job) => {
    await job.updateProgress?.(50);
    await sleep(5);
  };
  const worker = new Worker('mail', work, { connection, concurrency: 4, limiter });
  worker.on('completed', () => done('completed'));
  for (let i = 0; Date.now() < until; i++) {
    const { id } = await queue.add('send', { i }, i % 4 === 0 ? { delay: 50 } : { removeOnComplete: i % 2 === 0 });
    await queue.getJob(id);
    await queue.getJobCounts();
    done('added');
    await sleep(PAUSE_MS);
  }
  await worker.close(true);
  await queue.close();
}

interface BeeJob {
  delayUntil(at: number): BeeJob;
  retries(n: number): BeeJob;
  save(): Promise<Job>;
}

interface BeeQueue {
  process(concurrency: number, processor: Processor): void;
  createJob(data: object): BeeJob;
  getJob(id: string): Promise<unknown>;
  checkHealth(): Promise<unknown>;
  on(event: string, then: () => void): void;
  close(): Promise<void>;
}

async function beeQueue({ load, port, until, done }: Given): Promise<void> {
  const Queue = load<new (name: string, options: object) => BeeQueue>('bee-queue');
  const queue = new Queue('mail', { redis: { host: '127.0.0.1', port }, activateDelayedJobs: true });
  queue.on('succeeded', () => done('completed'));
  queue.process(4, () => sleep(5));
  for (let i = 0; Date.now() < until; i++) {
    const job = queue.createJob({ i }).retries(1);
    const { id } = await (i % 4 === 0 ? job.delayUntil(Date.now() + 50) : job).save();
    await queue.getJob(id);
    if (i % 5 === 0) await queue.checkHealth();
    done('added');
    await sleep(PAUSE_MS);
  }
  await queue.close();
}

interface Limiter {
  schedule(work: () => Promise<void>): Promise<void>;
  currentReservoir(): Promise<number>;
  counts(): unknown;
  disconnect(): Promise<void>;
}

async function bottleneck({ load, port, until, done }: Given): Promise<void> {
  const Bottleneck = load<new (options: object) => Limiter>('bottleneck');
  const limiter = new Bottleneck({
    id: 'api',
    datastore: 'ioredis',
    clientOptions: { host: '127.0.0.1', port },
    Redis: load('ioredis'),
    maxConcurrent: 4,
    minTime: 5,
    reservoir: 100,
    reservoirRefreshAmount: 100,
    reservoirRefreshInterval: 1_000,
  });
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      while (Date.now() < until) {
        await limiter.schedule(() => sleep(5));
        await limiter.currentReservoir();
        done('scheduled');
      }
    }),
  );
  await limiter.disconnect();
}

interface Lock {
  extend(ms: number): Promise<Lock>;
  unlock(): Promise<void>;
}

interface Locks {
  lock(resource: string, ms: number): Promise<Lock>;
  on(event: string, then: () => void): void;
}

interface Client {
  get(key: string): Promise<string | null>;
  pttl(key: string): Promise<number>;
  quit(): Promise<unknown>;
}

async function redlock({ load, port, until, done }: Given): Promise<void> {
  const Redis = load<new (port: number) => Client>('ioredis');
  const Redlock = load<new (clients: readonly Client[], options: object) => Locks>('redlock');
  const client = new Redis(port);
  const locks = new Redlock([client], { retryCount: 100, retryDelay: 5, retryJitter: 5 });
  locks.on('clientError', () => done('refused'));
  await Promise.all(
    Array.from({ length: 4 }, async (_, n) => {
      while (Date.now() < until) {
        const resource = `lock:${n % 2}`;
        let lock = await locks.lock(resource, 1_000).catch(() => null);
        if (lock === null) continue;
        await client.get(resource);
        lock = await lock.extend(2_000);
        await client.pttl(resource);
        await lock.unlock();
        await client.get(resource);
        done('locked');
      }
    }),
  );
  await client.quit();
}

const WORKS: Readonly<Record<string, Work>> = {
  bull,
  bullmq,
  'bee-queue': beeQueue,
  bottleneck,
  redlock,
};

const [name, folder, port, seconds] = process.argv.slice(2);
const counts: Record<string, number> = {};
await WORKS[name]({
  load: createRequire(join(folder, 'package.json')) as Given['load'],
  port: Number(port),
  until: Date.now() + Number(seconds) * 1_000,
  done: (what) => (counts[what] = (counts[what] ?? 0) + 1),
});
process.stdout.write(`${JSON.stringify(counts)}\n`);
// Some packages keep connections and timers.
process.exit(0);
