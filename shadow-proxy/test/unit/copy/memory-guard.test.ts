/** Whether a mirror has the memory for a copy: at, below and above 98 % of its limit. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryGuard } from '../../../src/copy/job/memory-guard.js';
import type { Sequencer } from '../../../src/pipeline/sequencer.js';
import { decodeReply } from '../../../src/resp/decode.js';
import { bulk } from '../../../src/resp/encode.js';
import { FakeClock } from '../../support/fake-clock.js';

const clock = FakeClock.install();

interface Memory {
  used: number;
  data: number;
  max: number;
  evicted: number;
}

const MIB = 1 << 20;

/** A guard of a copy to the target, and why it said that this is full. */
function guarded(
  source: Partial<Memory>,
  target: Partial<Memory>,
): { guard: MemoryGuard; target: Memory; full: string[] } {
  const none = { used: 0, data: 0, max: 0, evicted: 0 };
  const memory = { source: { ...none, ...source }, target: { ...none, ...target } };
  const server = (side: 'source' | 'target'): unknown => ({
    side,
    ask: (_info: string, section: string) => {
      const { used, data, max, evicted } = memory[side];
      const text =
        section === 'memory'
          ? `used_memory:${used}\r\nused_memory_dataset:${data}\r\nmaxmemory:${max}\r\n`
          : `evicted_keys:${evicted}\r\n`;
      return Promise.resolve(decodeReply(bulk(text), 0).reply);
    },
  });
  const full: string[] = [];
  const sequencer = { servers: { source: server('source'), target: server('target') } } as unknown as Sequencer;
  return { guard: new MemoryGuard(sequencer, ['source'], (why) => full.push(why)), target: memory.target, full };
}

test('what is copied has to fit into 98 % of the mirror’s memory, beside what it needs itself', async () => {
  // 20 MiB of its own, and 78 MiB of data.
  for (const [data, fits] of [
    [78 * MIB - 1, true],
    [78 * MIB, true],
    [78 * MIB + 1, false],
  ] as const) {
    const { guard } = guarded({ data }, { used: 30 * MIB, data: 10 * MIB, max: 100 * MIB });
    const checked = guard.check();
    if (fits) await checked;
    else await assert.rejects(checked, { code: 'MEMORY', message: /the target would need about 98 MiB.* is 100 MiB/ });
  }
});

test('what it has already of the same keys is not counted twice, and without a limit all fits', async () => {
  await guarded({ data: 70 * MIB }, { used: 90 * MIB, data: 75 * MIB, max: 100 * MIB }).guard.check();
  await guarded({ data: 900 * MIB }, { used: 30 * MIB, data: 10 * MIB, max: 0 }).guard.check();
});

test('while it goes on, the mirror is full above 98 %, at the next look', async () => {
  for (const [used, isFull] of [
    [98 * MIB, false],
    [98 * MIB + 1, true],
  ] as const) {
    const { guard, target, full } = guarded({ data: 1 }, { used: 30 * MIB, data: 10 * MIB, max: 100 * MIB });
    await guard.check();
    guard.watch();
    target.used = used;
    await clock.advance(999);
    assert.deepEqual(full, []);
    await clock.advance(1);
    assert.equal(full.length, Number(isFull), `${used} bytes`);
    guard.close();
    await clock.advance(5_000);
    assert.equal(full.length, Number(isFull), 'it is not looked at any more');
  }
});

test('one eviction since the look before says so, too; those from before do not', async () => {
  const { guard, target, full } = guarded({ data: 1 }, { used: 30 * MIB, data: 10 * MIB, max: 100 * MIB, evicted: 7 });
  await guard.check();
  guard.watch();
  await clock.advance(1_000);
  assert.deepEqual(full, []);
  target.evicted = 8;
  await clock.advance(1_000);
  assert.match(full.join(), /the target evicts keys/);
  await clock.advance(1_000);
  assert.equal(full.length, 1);
  guard.close();
});
