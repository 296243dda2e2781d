/**
 * Plain counters on one server: what the store keeps of them, who takes over, and what is let go.
 *
 * Needs real servers: what the store keeps of plain counters on each server, and its scripts.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { startKeydb, startRedis, type LocalServer } from '../../shadow-proxy/src/local/servers.js';
import { missing } from '../../shadow-proxy/test/support/needs.js';
import { add, CounterError, expireAt, type PlainCounters } from '../src/index.js';
import { startProcess, until, type Process } from './support.js';

const GRACE_MS = 1000;

for (const kind of ['redis', 'keydb'] as const) {
  describe(`on one ${kind}`, { skip: kind === 'keydb' && (await missing('keydb')) }, () => {
    let server: LocalServer;
    let raw: Redis;
    const open: Process[] = [];
    const start = async (region: string): Promise<Process & { readonly plain: PlainCounters }> => {
      const process = await startProcess(server.port, { region, writer: 'proxy', refreshMs: 50 });
      open.push(process);
      return { ...process, plain: process.counters.plain({ graceMs: GRACE_MS, tendMs: 20 }) };
    };
    const value = async (plain: PlainCounters, name: string): Promise<number | null> =>
      (await plain.look([name])).map((found) => (found.exists ? found.value : null))[0];
    const keysOf = (name: string): Promise<string[]> => raw.keys(`counters:{${name}}:*`);
    before(async () => {
      server = await (kind === 'redis' ? startRedis() : startKeydb());
      raw = new Redis({ host: '127.0.0.1', port: server.port });
    });
    after(async () => {
      for (const process of open) process.crash();
      raw.disconnect();
      await server.stop();
    });

    test('two regions count one number, delete it and give it an end, and nothing of it is left behind', async () => {
      const [a, b] = [await start('a'), await start('b')];
      const replies = await Promise.all(Array.from({ length: 100 }, () => a.plain.add('n', 2)));
      assert.deepEqual(
        replies,
        Array.from({ length: 100 }, (_, i) => 2 * i + 2),
      );
      assert.equal(await b.plain.add('n', -1), 199);
      assert.equal(await b.plain.delete('n'), true);
      assert.equal(await a.plain.delete('n'), false);
      assert.equal(await a.plain.add('n'), 1);
      assert.deepEqual(await b.plain.runAll('n', [add(4), add(-1)]), [5, 4]);
      assert.equal(await b.plain.expireAt('n', Date.now() + 300), true);
      assert.equal(await value(a.plain, 'n'), 4);
      await until('its time is over', async () => (await value(a.plain, 'n')) === null);
      assert.equal(await a.plain.add('n'), 1);
      assert.equal(await a.plain.expireAt('n', Date.now() + 10), true);
      await until(
        'no part is left, in the store and in memory',
        async () => (await keysOf('n')).length === 0 && a.plain.size === 0 && b.plain.size === 0,
      );
    });

    test('the next process of a region takes over what the last one counted, and its key goes', async () => {
      const [first, b] = [await start('c'), await start('d')];
      await first.plain.add('taken', 7);
      await b.plain.add('taken', 10);
      first.crash();
      const second = await start('c');
      assert.equal(await value(second.plain, 'taken'), 17);
      assert.equal(await second.plain.add('taken'), 18);
      await until('one key each is left', async () => (await keysOf('taken')).length === 2);
      assert.deepEqual([await value(b.plain, 'taken'), await value(second.plain, 'taken')], [18, 18]);
      assert.equal(await b.plain.delete('taken'), true);
      await until('nothing is left', async () => (await keysOf('taken')).length === 0);
    });

    test('a part that the server lost, or has an old value of, is restored by the next repair of its writer', async () => {
      const [a, b] = [await start('e'), await start('f')];
      await a.plain.add('lost', 5);
      await b.plain.add('lost', 6);
      const [key] = (await keysOf('lost')).filter((each) => each.includes(a.counters.id));
      const before = (await raw.get(key))!;
      await a.plain.add('lost', 5);
      await raw.set(key, before);
      assert.equal(await value(b.plain, 'lost'), 11);
      await a.counters.repair();
      assert.equal(await value(b.plain, 'lost'), 16);
      await raw.flushall();
      await Promise.all([a.counters.repair(), b.counters.repair()]);
      assert.deepEqual([await value(a.plain, 'lost'), await value(b.plain, 'lost')], [16, 16]);
    });

    test('a failed step changes nothing, others that came with it count', async () => {
      const { plain } = await start('g');
      const [one, most, two] = await Promise.allSettled([
        plain.add('m'),
        plain.runAll<unknown>('m', [add(1), expireAt(Date.now() + 1e6), add(Number.MAX_SAFE_INTEGER)]),
        plain.add('m'),
      ]);
      assert.deepEqual(
        [one, two].map((each) => each.status === 'fulfilled' && each.value),
        [1, 2],
      );
      assert.ok(most.status === 'rejected' && most.reason instanceof CounterError && most.reason.code === 'OPTION');
      assert.deepEqual(await plain.look(['m', 'none']), [
        { exists: true, value: 2, endsAt: null },
        { exists: false, value: 0, endsAt: null },
      ]);
    });
  });
}
