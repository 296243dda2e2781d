/** What a process leaves that is killed while the mirror is late: real ones are seldom killed at these moments. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GAP_AT } from '../../../../shadow-proxy/src/storage/journal-format.js';
import { WORLD } from '../../world/events.js';
import { systemError } from '../../world/system-error.js';
import { KeptWorld, type KeptClient } from '../../kept/world.js';

const LATE_MS = 3_000;
/** A journal that names no key of a script is kept for one second. */
const KEPT_MS = 1_500;
/** It writes a key that it does not name. */
const HIDES = "redis.call('SET', KEYS[1] .. ARGV[1], 'v') return 1";

/** Both servers have a key, and the shard is clean. */
async function begin(kept: KeptWorld): Promise<KeptClient> {
  const client = await kept.client();
  await client.ask('SET k first');
  await kept.until(() => kept.isClean && kept.values('0 k').every((value) => value === 'first'), 'both have the key');
  return client;
}

/** The process is killed, and what is on its way to the mirror is lost. */
function crash({ proxy, target, world }: KeptWorld): void {
  for (const { far, to } of world.network.connections) if (to.host === target.address.host) far.loseBehind(0);
  proxy.kill();
}

async function start(kept: KeptWorld): Promise<void> {
  const { proxy } = kept;
  proxy.start();
  await kept.until(() => proxy.launched !== null, 'the next process serves');
}

/** Whatever the next process does, it ends with equal servers. */
async function isEqual(kept: KeptWorld, key: string, expected: string | null): Promise<void> {
  await kept.until(() => kept.isClean, 'the shard is clean');
  assert.deepEqual(kept.values(`0 ${key}`), [expected, expected]);
}

test('A process that is killed before it has repaired what another one left leaves that to the next', () =>
  KeptWorld.run(async (kept) => {
    const { proxy, target, world } = kept;
    const client = await begin(kept);
    target.pause(LATE_MS);
    await client.ask('SET later value');
    crash(kept);
    const { disk } = proxy.host;
    const rename = disk.rename.bind(disk);
    let isKilled = false;
    disk.rename = (from, to) => {
      rename(from, to);
      // Its journal is in the place of the other one, and it does not serve yet.
      if (to.endsWith('journal-b')) world.events.after(0, WORLD, () => (crash(kept), (isKilled = true)));
    };
    proxy.start();
    await kept.until(() => isKilled, 'the next process is killed');
    disk.rename = rename;
    await start(kept);
    await isEqual(kept, 'later', 'value');
  }));

test('A file of the journal is kept until the mirror has confirmed what it lists', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await begin(kept);
      await client.ask(['EVAL', HIDES, '1', 'a', 'b']);
      kept.target.pause(LATE_MS);
      await client.ask('SET later value');
      await kept.pass(KEPT_MS);
      crash(kept);
      await start(kept);
      await isEqual(kept, 'later', 'value');
    },
    {},
    ({ source, target }) => {
      for (const { model } of [source, target])
        model.addScript(HIDES, ({ call, keys, args }) => {
          call('SET', keys[0] + args[0], 'v');
          return 1;
        });
    },
  ));

test('A journal that lacks a write because the disk was full is not believed', () =>
  KeptWorld.run(async (kept) => {
    const client = await begin(kept);
    const { disk } = kept.proxy.host;
    const write = disk.write.bind(disk);
    // A full disk has room for a byte that it has already.
    disk.write = (descriptor, bytes, at, length, position) => {
      if (position === GAP_AT) return write(descriptor, bytes, at, length, position);
      throw Object.assign(systemError('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    };
    kept.target.pause(LATE_MS);
    await client.ask('SET later value');
    crash(kept);
    disk.write = write;
    await start(kept);
    await isEqual(kept, 'later', 'value');
  }));

test('A key that a client has deleted is none that only the target has', () =>
  KeptWorld.run(
    async (kept) => {
      kept.write(kept.target, 'foreign', 'v');
      const consent = { overwrite: true, deleteForeign: false, confirm: 1 };
      const change = kept.tryChange('dualwrite', { consent });
      await kept.until(() => change.outcome === 'made', 'the stage is dualwrite');
      kept.startJob({ kind: 'backfill' });
      await kept.until(() => kept.isClean, 'all keys are copied');
      const client = await begin(kept);
      kept.target.pause(LATE_MS);
      await client.ask('DEL k');
      crash(kept);
      await start(kept);
      await isEqual(kept, 'k', null);
      assert.deepEqual(kept.values('0 foreign'), [null, 'v']);
    },
    { default: { stage: 'off' } },
  ));
