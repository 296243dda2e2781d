/** Found in profile `mute`, seed 1: late commands of the proxy were taken for writes that bypass it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const HELD_MS = 500;
/** A connection without replies is closed before that. */
const LOST_MS = 3_000;
const SCRIPT = "for i = 1, 3 do redis.call('SET', KEYS[1], 'v') end return 1";

/** Reads the source's counts, as the gate does. @returns the writes that are taken for those of others */
async function bypassing(kept: KeptWorld): Promise<unknown> {
  let found: { readonly writes: unknown } | null | undefined;
  kept.proxy.within(() => {
    void kept.proxy.parts!.collector.passedWrites().then(({ last }) => (found = last));
  });
  await kept.until(() => found !== undefined, 'the counts are read');
  return found!;
}

/** No read in between shows such writes. */
async function isQuiet(kept: KeptWorld, lastsMs: number): Promise<void> {
  for (let i = 0; i < 4; i++) {
    assert.equal(await bypassing(kept), null);
    await kept.pass(lastsMs / 4);
  }
  await kept.pass(lastsMs);
  assert.equal(await bypassing(kept), null);
}

test('A transaction that waits to be sent is no write of another client', () =>
  KeptWorld.run(async (kept) => {
    const [client, other] = [await kept.client(), await kept.client()];
    await other.ask('HELLO 3');
    const lane = await kept.endFor(kept.source, 'GET j', () => other.ask('GET j'));
    await client.ask('SET k u');
    await client.ask('WATCH k');
    await client.ask('MULTI');
    for (const value of ['v', 'w', 'x']) await client.ask(`SET k ${value}`);
    lane.silence(HELD_MS);
    other.send('GET j');
    client.send('EXEC');
    await isQuiet(kept, HELD_MS);
    assert.deepEqual(client.replies.at(-1), ['+OK', '+OK', '+OK']);
  }));

test('What a late script writes is no write of another client', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await kept.client();
      const lane = await kept.endFor(kept.source, 'GET k', () => client.ask('GET k'));
      await client.ask('SET k v');
      lane.other.silence(HELD_MS);
      client.send(['EVAL', SCRIPT, '1', 'k']);
      await isQuiet(kept, HELD_MS);
      assert.equal(client.replies.at(-1), 1);
    },
    {},
    ({ source, target }) => {
      for (const { model } of [source, target])
        model.addScript(SCRIPT, ({ call, keys }) => {
          for (let i = 0; i < 3; i++) call('SET', keys[0], 'v');
          return 1;
        });
    },
  ));

test('What the source still runs of a lost connection is no write of another client', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    const lane = await kept.endFor(kept.source, 'SET k', () => client.ask('SET k first'));
    kept.source.model.refuse((_client, name) => (name === 'client|kill' ? 'NOPERM' : null));
    lane.other.silence(LOST_MS);
    client.send('SET k second');
    await kept.until(() => client.isCutOff, 'the connection is lost');
    await isQuiet(kept, LOST_MS);
    assert.equal(kept.source.entry('0 k')?.value, 'second');
  }));

test('What the source got while it was the mirror is no write of another client', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    await client.ask('SET k v');
    await isQuiet(kept, HELD_MS);
    await kept.change('live');
    await client.ask('SPOP nothing');
    await client.ask('SADD set a b');
    await client.ask('SPOP set');
    await kept.until(() => kept.isClean, 'the mirror has confirmed all');
    await kept.change('shadow');
    await isQuiet(kept, HELD_MS);
  }));
