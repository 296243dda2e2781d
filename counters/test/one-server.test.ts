/**
 * The same on one Redis, one KeyDB, and with either client library: several processes of one region.
 *
 * Needs real servers: the commands of counters on Redis and KeyDB, by ioredis and node-redis.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Relay } from '../../shadow-proxy/src/local/relay.js';
import { startKeydb, startRedis, type LocalServer } from '../../shadow-proxy/src/local/servers.js';
import { missing } from '../../shadow-proxy/test/support/needs.js';
import { CounterError } from '../src/index.js';
import { LIBRARIES, startProcess, until, type Process } from './support.js';

const code = (expected: string) => (error: unknown) => error instanceof CounterError && error.code === expected;
/** So long that no test meets its end. */
const LONG_MS = 1e12;
const times = <T>(n: number, body: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: n }, (_, i) => body(i)));

for (const kind of ['redis', 'keydb'] as const) {
  describe(`on one ${kind}`, { skip: kind === 'keydb' && (await missing('keydb')) }, () => {
    let server: LocalServer;
    let raw: Redis;
    let processes: Process[];
    before(async () => {
      server = await (kind === 'redis' ? startRedis() : startKeydb());
      raw = new Redis({ host: '127.0.0.1', port: server.port });
      processes = await times(4, (i) =>
        startProcess(server.port, { region: 'eu', writer: `app-${i}` }, LIBRARIES[i % 3]),
      );
    });
    after(async () => {
      await Promise.all(processes.map((each) => each.close()));
      raw.disconnect();
      await server.stop();
    });
    const each = <T>(body: (process: Process, i: number) => Promise<T>): Promise<T[]> =>
      Promise.all(processes.map(body));

    test('what several processes count adds up for each of them, and for one that comes later', async () => {
      await each(({ counters }) => times(100, (i) => counters.growOnly('visits').add(i + 1)));
      await each(({ counters }) => times(100, (i) => counters.upDown('seats').add(i % 2 === 0 ? 3 : -2)));
      const late = await startProcess(server.port, { region: 'eu' });
      for (const { counters } of [...processes, late]) {
        assert.equal(await counters.growOnly('visits').value(), 4 * 5050);
        assert.equal(await counters.upDown('seats').value(), 4 * 50);
      }
      await late.close();
    });

    test('many increments of one key at a time share writes', async () => {
      const calls = async (): Promise<number> =>
        Number(/^cmdstat_set:calls=(\d+)/m.exec(await raw.info('commandstats'))![1]);
      const from = await calls();
      await times(1000, () => processes[0].counters.growOnly('hot').add());
      assert.equal(await processes[1].counters.growOnly('hot').value(), 1000);
      assert.ok((await calls()) - from <= 10, `${(await calls()) - from} writes`);
    });

    test('a limiter admits exactly its limit over all processes, and rejects further requests without counting them', async () => {
      for (const make of ['fixedWindow', 'slidingWindow'] as const) {
        const limiters = processes.map(({ counters }) =>
          counters[make](`${make}-api`, { limit: 100, windowMs: LONG_MS }),
        );
        const taken = (await Promise.all(limiters.map((limiter) => times(60, () => limiter.take('user'))))).flat();
        const admitted = taken.filter((one) => one.admitted).length;
        assert.ok(admitted <= 100, `${admitted} admitted`);
        // Those who were charged at the same time and had to give it back may have kept others out: for now only.
        for (let more = admitted; more < 100; more++)
          assert.equal((await limiters[more % 4].take('user')).admitted, true);
        const refused = await limiters[0].take('user');
        assert.deepEqual([refused.admitted, refused.remaining, refused.blind], [false, 0, []]);
        assert.ok(refused.retryInMs > 0 && refused.retryInMs <= LONG_MS * 1.1);
        assert.equal((await limiters[3].peek('other')).remaining, 100);
      }
    });

    test('one process alone fills a window to the last', async () => {
      const limiter = processes[0].counters.fixedWindow('alone', { limit: 50, windowMs: LONG_MS });
      const taken = await times(80, () => limiter.take('user'));
      assert.equal(taken.filter((one) => one.admitted).length, 50);
      assert.equal(
        (await processes[1].counters.fixedWindow('alone', { limit: 50, windowMs: LONG_MS }).peek('user')).remaining,
        0,
      );
    });

    test('a window ends, and its keys with it', async () => {
      const limiter = processes[0].counters.slidingWindow('short', { limit: 2, windowMs: 300, buckets: 3 });
      assert.deepEqual(
        (await times(3, () => limiter.take('user'))).map((one) => one.admitted),
        [true, true, false],
      );
      await until('the window has passed', async () => (await limiter.peek('user')).remaining === 2);
      await until('the keys are gone', async () => (await raw.keys('*short*')).length === 0);
      assert.equal((await limiter.take('user')).admitted, true);
    });

    test('a counter that expires is deleted on the server at that moment, and forgotten by the processes', async () => {
      const expiresAt = Date.now() + 400;
      await each(({ counters }) => counters.growOnly('brief', { expiresAt }).add(5));
      assert.equal(await processes[3].counters.growOnly('brief', { expiresAt }).value(), 20);
      await until('the keys are gone', async () => (await raw.keys('*brief*')).length === 0);
      await each(({ counters }) => counters.repair());
      assert.deepEqual(await raw.keys('*brief*'), []);
      assert.equal(await processes[0].counters.growOnly('brief').value(), 0);
    });

    test('a reset takes off what was there, once, though two ask for it', async () => {
      const [a, b] = processes.map(({ counters }) => counters.upDown('score'));
      await a.add(30);
      await b.add(-10);
      // Either may have seen the other's.
      const tookOff = await Promise.all([a.reset(), b.reset()]);
      assert.ok(tookOff.includes(20) && tookOff.every((each) => each === 20 || each === 0), tookOff.join());
      await b.add(3);
      assert.deepEqual(await each(({ counters }) => counters.upDown('score').value()), [3, 3, 3, 3]);
    });

    test('a restarted process goes on in a key of its own; what it had counted stays', async () => {
      const first = await startProcess(server.port, { region: 'eu', writer: 'phoenix' });
      await first.counters.growOnly('lives').add(7);
      first.crash();
      const second = await startProcess(server.port, { region: 'eu', writer: 'phoenix' });
      await second.counters.growOnly('lives').add(2);
      assert.equal(await processes[0].counters.growOnly('lives').value(), 9);
      await second.close();
    });

    test('what the server lost or has otherwise is written again by itself', async () => {
      const process = await startProcess(server.port, { region: 'eu', writer: 'keeper', repairMs: 50 });
      await process.counters.growOnly('kept').add(4);
      const [key] = (await raw.keys('*{kept}*')).filter((one) => one.includes(process.counters.id));
      const reader = processes[1].counters.growOnly('kept');
      await raw.set(key, 'c 1 0');
      await until('the value is back', async () => (await reader.value()) === 4);
      await raw.del(key);
      await until('the key is back', async () => (await reader.value()) === 4);
      await process.close();
    });

    test('what the server refuses is not counted', async () => {
      const counter = processes[1].counters.growOnly('full');
      await counter.add(1);
      await raw.config('SET', 'maxmemory', '1');
      try {
        await assert.rejects(counter.add(10), code('REFUSED'));
      } finally {
        await raw.config('SET', 'maxmemory', '0');
      }
      await counter.add(100);
      assert.equal(await processes[0].counters.growOnly('full').value(), 101);
    });

    test('an increment whose answer was lost is counted once, by the next write', async () => {
      const relay = await Relay.start(server);
      const process = await startProcess(relay.port, { region: 'eu', writer: 'lost' }, 'node-redis');
      const counter = process.counters.growOnly('unsure');
      await counter.add(1);
      relay.hold('up');
      const unsure = assert.rejects(counter.add(10), code('UNCONFIRMED'));
      await until('the write is on its way', () => relay.waiting('up') > 0);
      relay.cut();
      await unsure;
      relay.release();
      await counter.add(100);
      assert.equal(await processes[0].counters.growOnly('unsure').value(), 111);
      await process.close();
      await relay.close();
    });

    test('foreign values, wrong arguments and closed counters are errors with a code', async () => {
      const { counters } = processes[2];
      await raw.set(`counters:{strange}:${processes[0].counters.id}`, '5');
      await assert.rejects(counters.growOnly('strange').value(), code('FOREIGN_VALUE'));
      await assert.rejects(counters.growOnly('x').add(-1), code('OPTION'));
      await assert.rejects(counters.upDown('x').add(1.5), code('OPTION'));
      await assert.rejects(
        counters
          .growOnly('x')
          .add(Number.MAX_SAFE_INTEGER)
          .then(() => counters.growOnly('x').add(1)),
        code('OPTION'),
      );
      assert.throws(() => counters.fixedWindow('x', { limit: 0, windowMs: 1 }), code('OPTION'));
      assert.throws(() => counters.slidingWindow('x', { limit: 1, windowMs: 1001 }), code('OPTION'));
      await assert.rejects(counters.fixedWindow('x', { limit: 5, windowMs: 1000 }).take('y', 6), code('OPTION'));
      const closed = await startProcess(server.port, { region: 'eu' });
      await closed.close();
      await assert.rejects(closed.counters.growOnly('x').add(), code('CLOSED'));
    });

    test('a region of which nothing is heard is named; one that closed, or was dismissed, is not', async () => {
      const us = await startProcess(server.port, { region: 'us' });
      const near = await startProcess(server.port, { region: 'ap', blindAfterMs: 600 });
      const limiter = near.counters.fixedWindow('near', { limit: 10, windowMs: LONG_MS, whenBlind: 'deny' });
      assert.deepEqual([near.counters.blind(), (await limiter.take('user')).admitted], [[], true]);
      us.crash();
      await until('us is silent', () => near.counters.blind().join() === 'us');
      assert.deepEqual(await limiter.take('user').then(({ admitted, blind }) => ({ admitted, blind })), {
        admitted: false,
        blind: ['us'],
      });
      await near.counters.dismiss('us');
      assert.deepEqual([near.counters.blind(), (await limiter.take('user')).admitted], [[], true]);
      // One that ended without a word long before the last of its region closed does not keep it present.
      const crashed = await startProcess(server.port, { region: 'us' });
      crashed.crash();
      const last = await startProcess(server.port, { region: 'us', now: () => Date.now() + 120_000 });
      await last.close();
      await near.counters.dismiss('nowhere');
      // Longer than `blindAfterMs`: by now a silent region would be named.
      await sleep(700);
      assert.deepEqual(near.counters.blind(), []);
      await near.close();
    });
  });
}
