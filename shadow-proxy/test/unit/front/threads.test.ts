/** How many front threads there are, by plan, cores and system. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frontThreads, type Surroundings } from '../../../src/front/threads.js';

const on = (more: Partial<Surroundings>): Surroundings => ({ cores: 8, node: '22.12.0', platform: 'linux', ...more });
const threads = (wanted: 'auto' | number, shards: number, more: Partial<Surroundings> = {}): number =>
  frontThreads(wanted, shards, false, on(more)).threads;

test('auto takes half of the cores, at most four, and none on two; shards share them', () => {
  const counts = [1, 2, 3, 4, 6, 8, 64].map((cores) => threads('auto', 1, { cores }));
  assert.deepEqual(counts, [0, 0, 1, 2, 3, 4, 4]);
  assert.deepEqual([threads('auto', 2), threads('auto', 3), threads('auto', 5)], [2, 1, 0]);
});

test('where threads cannot share an address, auto takes none and a number at most one, and says so', () => {
  for (const more of [{ node: '22.11.9' }, { node: '20.20.2' }, { platform: 'darwin' }]) {
    assert.equal(threads('auto', 1, more), 0);
    const { threads: one, problem } = frontThreads(3, 1, false, on(more));
    assert.equal(one, 1);
    assert.match(
      problem!,
      /^threads is 3, and there is 1: more need native sockets, or Linux and Node 22\.12 or newer, this is /,
    );
    assert.deepEqual(frontThreads(1, 1, false, on(more)), { threads: 1, problem: null });
  }
});

test('a number is taken as it is', () => {
  for (const node of ['22.12.0', '24.0.0', '26.1.0'])
    assert.deepEqual(frontThreads(7, 3, false, on({ node, cores: 2 })), { threads: 7, problem: null });
  assert.equal(threads(0, 1), 0);
});

test('native threads share an address on every Node', () => {
  for (const node of ['20.20.2', '22.11.9']) {
    assert.deepEqual(frontThreads(3, 1, true, on({ node })), { threads: 3, problem: null });
    assert.equal(frontThreads('auto', 1, true, on({ node })).threads, 4);
  }
  assert.equal(frontThreads('auto', 1, true, on({ cores: 2 })).threads, 0);
});
