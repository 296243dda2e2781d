/** Found by `npm run simulate -- --profile disk`. No real disk fails at one call just when a test asks for it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useWorld } from '../../../../shadow-proxy/src/io/world.js';
import { readState, StateStore } from '../../../../shadow-proxy/src/storage/state.js';
import { SimulatedWorld } from '../../world/world.js';

const AT = { shadow: { stage: 'shadow', percent: 100 }, live: { stage: 'live', percent: 100 } } as const;

/**
 * A change from shadow to live, during which the disk fails from its nth sync on, so many times.
 * @returns what the change ends with, and the stages that the process and the disk have then
 */
async function failedChange(nth: number, times: number): Promise<{ problem: string; held: string; kept: string }> {
  const world = new SimulatedWorld(1, { delayMs: [0, 0], lateShare: 0, lateMs: 0, splitShare: 0 });
  const host = world.newHost('10.0.0.1');
  useWorld(world);
  const proxy = world.newProcess('proxy', host);
  const settled = async <T>(work: () => Promise<T>): Promise<T> => {
    let promise: Promise<T> | undefined;
    let done = false;
    const finish = (): void => void (done = true);
    world.events.after(0, proxy, () => (promise = work()).then(finish, finish));
    assert.ok(await world.events.run(() => done, 60_000), 'it never ends');
    return promise!;
  };
  try {
    host.disk.mkdir('/state');
    const store = await settled(() => StateStore.open('/state', 'a'));
    await settled(() => store.update({ workloads: { sessions: AT.shadow } }, { event: 'stage' }));
    const sync = host.disk.sync.bind(host.disk);
    let calls = 0;
    host.disk.sync = (descriptor) => {
      calls++;
      if (calls >= nth && calls < nth + times) throw Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO' });
      sync(descriptor);
    };
    const problem = await settled(() =>
      store.update({ workloads: { sessions: AT.live } }, { event: 'stage' }).then(
        () => 'none',
        ({ message }: Error) => message,
      ),
    );
    await world.events.run(() => false, 1_000);
    const left = await settled(() => readState('/state/a', 'a'));
    return { problem, held: store.current.workloads.sessions.stage, kept: left!.workloads.sessions.stage };
  } finally {
    useWorld(null);
  }
}

for (const [what, nth] of [
  ['the new state', 1],
  ['its folder, when the new state is in its place', 2],
  ['the history', 3],
] as const)
  for (const times of [1, 15])
    test(`a change that fails at ${what} is not there for the next process (${times} times)`, async () => {
      const { problem, held, kept } = await failedChange(nth, times);
      assert.match(problem, /^\/state\/a cannot be written: EIO/);
      assert.deepEqual([held, kept], ['shadow', 'shadow']);
    });

test('a change that the disk takes is there', async () => {
  assert.deepEqual(await failedChange(99, 1), { problem: 'none', held: 'live', kept: 'live' });
});
