/**
 * Clients that talk: some publish numbered messages, others listen. Each message of a publisher comes to everybody who
 * listens to its channel, once, and behind the one before.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { patienceMs } from '../../support/patience.js';
import { Random } from './random.js';

export interface TalkOptions {
  readonly host?: string;
  readonly port: number;
  readonly seed: number;
  readonly durationMs: number;
  /** Goes on behind that time until it has seen enough, on a machine of any pace; default: it ends with the time. */
  readonly isEnough?: (report: TalkReport) => boolean;
}

export interface TalkReport {
  published: number;
  heard: number;
  /** Times that a subscriber unsubscribed or disconnected, and subscribed again. */
  left: number;
  readonly violations: string[];
}

const CHANNELS = ['chat:a', 'chat:b', 'chat:c'];
const PUBLISHERS = 3;
const STEADY = 4;
const PASSING = 4;
/** How long the last messages may take to come. */
const LATE_MS = 10_000;

/** What one listener heard last, by channel and publisher. */
class Ear {
  readonly last = new Map<string, number>();

  constructor(
    private readonly name: string,
    private readonly report: TalkReport,
  ) {}

  hear(channel: string, message: string): void {
    this.report.heard++;
    const [to, publisher, number] = message.split(' ');
    const id = `${channel} ${publisher}`;
    const before = this.last.get(id);
    if (to !== channel) this.report.violations.push(`${this.name}: ${message} came on ${channel}`);
    if (before !== undefined && Number(number) !== before + 1)
      this.report.violations.push(`${this.name}: ${message} on ${channel} after number ${before}`);
    this.last.set(id, Number(number));
  }
}

/** Talks until the time is over, and it is enough. Reports, never throws, what a server does wrong. */
export async function talk(options: TalkOptions): Promise<TalkReport> {
  const report: TalkReport = { published: 0, heard: 0, left: 0, violations: [] };
  const { durationMs, isEnough = () => true } = options;
  const until = Date.now() + durationMs;
  const isOver = (): boolean => Date.now() >= until && (isEnough(report) || report.violations.length > 0);
  const closers: (() => void)[] = [];
  const caught = (name: string) => (error: unknown) =>
    void report.violations.push(`${name}: ${(error as Error).stack ?? String(error)}`);
  try {
    const steady = await Promise.all(Array.from({ length: STEADY }, (_, i) => listen(options, i, report, closers)));
    const sent = new Map<string, number>();
    const passing = Array.from({ length: PASSING }, (_, i) =>
      pass(options, i, isOver, report, closers).catch(caught(`passing ${i}`)),
    );
    await Promise.all(
      Array.from({ length: PUBLISHERS }, (_, i) =>
        publish(options, i, isOver, report, sent, closers).catch(caught(`publisher ${i}`)),
      ),
    );
    await Promise.all(passing);
    const missing = (): string[] =>
      steady.flatMap(({ last }, i) =>
        [...sent]
          .filter(([id, number]) => last.get(id) !== number)
          .map(([id, number]) => `steady ${i} heard ${last.get(id)} of ${number} on ${id}`),
      );
    for (const since = Date.now(); missing().length > 0 && Date.now() - since < patienceMs(LATE_MS);) await sleep(20);
    report.violations.push(...missing());
  } catch (error) {
    caught('talk')(error);
  } finally {
    for (const close of closers) close();
  }
  report.violations.splice(50);
  return report;
}

/** Listens to all channels from beginning to end: in RESP2 or RESP3, by names or by a pattern. */
async function listen(
  { host = '127.0.0.1', port }: TalkOptions,
  number: number,
  report: TalkReport,
  closers: (() => void)[],
): Promise<Ear> {
  const ear = new Ear(`steady ${number}`, report);
  for (const channel of CHANNELS) for (let i = 0; i < PUBLISHERS; i++) ear.last.set(`${channel} ${i}`, 0);
  if (number % 2 === 0) {
    const client = new Redis({ host, port, protocol: number % 4 === 0 ? 2 : 3, retryStrategy: () => null });
    client.on('error', () => {});
    closers.push(() => client.disconnect());
    client.on('message', (channel: string, message: string) => ear.hear(channel, message));
    await client.subscribe(...CHANNELS);
    return ear;
  }
  const client = createClient({ socket: { host, port, reconnectStrategy: false }, RESP: 3 });
  client.on('error', () => {});
  closers.push(() => client.destroy());
  await client.connect();
  await client.pSubscribe('chat:[abc]', (message, channel) => ear.hear(channel, message));
  return ear;
}

/**
 * Comes, listens to something, goes: by unsubscribing, or for good; and asks other things meanwhile, where RESP3 lets
 * it.
 */
async function pass(
  { host = '127.0.0.1', port, seed }: TalkOptions,
  number: number,
  isOver: () => boolean,
  report: TalkReport,
  closers: (() => void)[],
): Promise<void> {
  const random = new Random(seed, 2_000_000 + number);
  const RESP = number % 2 === 0 ? 2 : 3;
  while (!isOver()) {
    const client = createClient({ socket: { host, port, reconnectStrategy: false }, RESP });
    client.on('error', () => {});
    closers.push(() => client.isOpen && client.destroy());
    await client.connect();
    for (let visits = random.between(1, 4); visits > 0 && !isOver(); visits--) {
      const ear = new Ear(`passing ${number}`, report);
      const channel = random.pick(CHANNELS);
      const listener = (message: string, from: string): void => ear.hear(from, message);
      const byPattern = random.chance(0.4);
      await (byPattern ? client.pSubscribe(`${channel}*`, listener) : client.subscribe(channel, listener));
      for (let i = random.between(0, 10); i > 0; i--) {
        await sleep(random.between(0, 20));
        const token = `talk-${number}-${i}`;
        const answer = RESP === 3 ? await client.echo(token) : token;
        if (String(answer) !== token) report.violations.push(`passing ${number}: ECHO ${token} got ${String(answer)}`);
      }
      if (visits === 1 && random.chance(0.5)) break;
      await (byPattern ? client.pUnsubscribe(`${channel}*`, listener) : client.unsubscribe(channel, listener));
      // node-redis gives bytes after it has been subscribed in RESP2.
      const answer: unknown = await client.echo('still here');
      if (String(answer) !== 'still here') report.violations.push(`passing ${number}: ECHO got ${String(answer)}`);
    }
    report.left++;
    client.destroy();
  }
}

/** Some at once, some in transactions. */
async function publish(
  { host = '127.0.0.1', port, seed }: TalkOptions,
  number: number,
  isOver: () => boolean,
  report: TalkReport,
  sent: Map<string, number>,
  closers: (() => void)[],
): Promise<void> {
  const random = new Random(seed, 3_000_000 + number);
  const client = new Redis({ host, port, protocol: number % 2 === 0 ? 2 : 3, retryStrategy: () => null });
  client.on('error', () => {});
  closers.push(() => client.disconnect());
  while (!isOver()) {
    const batch = random.chance(0.2) ? client.multi() : client.pipeline();
    const count = random.between(1, 10);
    for (let i = 0; i < count; i++) {
      const channel = random.pick(CHANNELS);
      const id = `${channel} ${number}`;
      const next = (sent.get(id) ?? 0) + 1;
      sent.set(id, next);
      batch.publish(channel, `${id} ${next}`);
    }
    const results = (await batch.exec()) ?? [];
    report.published += results.length;
    if (results.length !== count)
      report.violations.push(`publisher ${number}: ${results.length} replies to ${count} messages`);
    for (const [error, receivers] of results) {
      if (error !== null || Number(receivers) < STEADY)
        report.violations.push(
          `publisher ${number}: ${error === null ? `${String(receivers)} received it` : error.message}`,
        );
    }
    await sleep(random.between(0, 15));
  }
}
