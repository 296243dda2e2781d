/** Clients that know what every reply must be: counters of their own, counters that they share, and read-backs. */
import assert from 'node:assert/strict';
import type { Argument } from '../../../src/resp/encode.js';
import type { Scene } from './scene.js';

export interface Load {
  /** Commands that were answered so far. */
  readonly answered: number;
  /** Ends the clients, and asserts that no reply was wrong; resolves with how often each shared key was incremented. */
  stop(): Promise<ReadonlyMap<string, number>>;
}

export interface LoadOptions {
  readonly clients?: number;
  /** What the names of keys begin with. */
  readonly prefix?: string;
  /** Single keys only, so that a percent may be live. */
  readonly transactions?: boolean;
}

const SHARED = 20;
const PIPELINE = 40;

/** Every other client speaks RESP3, every third uses another database: several lanes lead to the same keys. */
export async function startLoad(
  scene: Scene,
  { clients = 6, prefix = 'n:', transactions = true }: LoadOptions = {},
): Promise<Load> {
  const shared = new Map<string, number>();
  let answered = 0;
  let running = true;

  async function drive(id: number): Promise<void> {
    const wire = await scene.wire();
    const db = id % 3 === 2 ? 1 : 0;
    await wire.ask('HELLO', id % 2 === 0 ? 2 : 3);
    if (db !== 0) await wire.ask('SELECT', db);
    let count = 0;
    for (let round = 0; running; round++) {
      const own = `${prefix}own:${id}:${round % 7}:${round >> 6}`;
      const sent: { args: readonly Argument[]; expected: string | null; shared?: string }[] = [];
      let value = 0;
      sent.push({ args: ['DEL', own], expected: null });
      for (let i = 0; i < PIPELINE; i++) {
        sent.push({ args: ['INCR', own], expected: `:${++value}` });
        const name = `${prefix}shared:${(round * 7 + i) % SHARED}`;
        if (i % 4 === 0) sent.push({ args: ['INCR', name], expected: null, shared: `${db}:${name}` });
        if (i % 5 === 0) sent.push({ args: ['GET', own], expected: `$${String(value).length}\r\n${value}` });
        if (i % 10 === 0 && transactions) {
          sent.push(
            { args: ['MULTI'], expected: '+OK' },
            { args: ['INCR', own], expected: '+QUEUED' },
            { args: ['APPEND', own, '0'], expected: '+QUEUED' },
          );
          sent.push({ args: ['EXEC'], expected: `*2\r\n:${++value}\r\n:${String(value).length + 1}` });
          value *= 10;
        }
      }
      const replies = await wire.pipeline(
        sent.map(({ args }) => args),
        20_000,
      );
      for (const [i, reply] of replies.entries()) {
        const { args, expected, shared: key } = sent[i];
        if (expected === null) assert.match(reply, /^:\d+$/, `${args.join(' ')} of client ${id}`);
        else assert.equal(reply, expected, `${args.join(' ')} of client ${id}, round ${round}`);
        if (key !== undefined) shared.set(key, (shared.get(key) ?? 0) + 1);
      }
      answered += replies.length;
      count++;
    }
    assert.ok(count > 0);
  }

  const all = Promise.all(Array.from({ length: clients }, (_, id) => drive(id)));
  // It is awaited in the end; until then a failure must not end the process.
  all.catch(() => undefined);
  return {
    get answered() {
      return answered;
    },
    async stop() {
      running = false;
      await all;
      return shared;
    },
  };
}

/** Asserts that both servers hold each shared counter at exactly the number of its increments. */
export async function assertCounted(scene: Scene, shared: ReadonlyMap<string, number>): Promise<void> {
  assert.ok(shared.size > 0);
  for (const side of ['source', 'target'] as const) {
    for (const db of [0, 1]) {
      const keys = [...shared.keys()].filter((id) => id.startsWith(`${db}:`));
      const values = await scene.client({ of: scene[side], db }).mget(keys.map((id) => id.slice(2)));
      assert.deepEqual(
        Object.fromEntries(keys.map((id, i) => [id, Number(values[i])])),
        Object.fromEntries(keys.map((id) => [id, shared.get(id)])),
        side,
      );
    }
  }
}
