/** What the Sentinel of a process knows from the process itself, on a clock that the test moves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ownership } from '../../../src/lease/ownership.js';
import { SentinelWatch } from '../../../src/shard/sentinel-watch.js';
import { Masters } from '../../../src/sentinel/masters.js';
import { FakeClock } from '../../support/fake-clock.js';

const clock = FakeClock.install();
const MASTER = { name: 'main', shard: 'a', announce: { host: '10.0.0.1', port: 0 } };

/** @param others what each further question for other Sentinels is answered with; null: no server answers */
function setting(...others: readonly (readonly string[] | null)[]) {
  const announced: string[] = [];
  let asked = 0;
  const ownership = {
    process: 'one',
    // The servers hang.
    announce: (service: string) => (announced.push(service), new Promise(() => undefined)),
    sentinels: () => Promise.resolve(others[asked++] ?? null),
  } as unknown as Ownership;
  const masters = new Masters(
    'test',
    { announce: { host: '10.0.0.1', port: 26379 }, masters: [MASTER] },
    () => undefined,
  );
  return { masters, announced, asked: () => asked, watch: new SentinelWatch(masters, ownership, MASTER) };
}

test('a process that serves is the master at once, also where a server hangs', () => {
  const { masters, announced, watch } = setting();
  watch.serves(6400);
  assert.deepEqual(masters.byName('main')?.address, { host: '10.0.0.1', port: 6400 });
  assert.deepEqual(announced, ['10.0.0.1:6400']);
  watch.stop();
});

test('it looks for other Sentinels at its first look, and every 10 s until it is stopped', async () => {
  const { masters, asked, watch } = setting([], ['10.0.0.2:26379'], null, []);
  watch.looked({ holder: { process: 'two', places: { service: '10.0.0.2:6400', sentinel: '' } }, isDown: false });
  watch.looked({ holder: { process: 'two', places: { service: '10.0.0.2:6400', sentinel: '' } }, isDown: false });
  await clock.advance(9_999);
  assert.equal(asked(), 1);
  await clock.advance(1);
  assert.deepEqual(
    masters.byName('main')!.others.map(({ address }) => address),
    [{ host: '10.0.0.2', port: 26379 }],
  );
  await clock.advance(10_000);
  assert.equal(masters.byName('main')!.others.length, 1, 'no server has said that it is gone');
  watch.stop();
  await clock.advance(30_000);
  assert.equal(asked(), 3);
});

test('a process that serves sees the lease as long as a server answers', async () => {
  const answers = Array.from({ length: 4 }, () => []);
  const { masters, watch } = setting(...answers);
  watch.serves(6400);
  const sees = (): boolean => masters.sees(masters.byName('main')!);
  await clock.advance(54_000);
  assert.equal(sees(), true, 'the last answer came 24 s ago');
  await clock.advance(1_000);
  assert.equal(sees(), false);
  watch.stop();
});
