/** Clients that block: what wakes them, and what ends their commands, in orders of events that are rare. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld, type KeptClient } from '../../kept/world.js';

const NOPERM = "NOPERM this user has no permissions to run the 'lpop' command";
const portOf = (address: string): number => Number(address.split(':')[1]);

/** A client that blocks at the source, which has run the command. */
async function blocks(kept: KeptWorld, command: string): Promise<KeptClient> {
  const client = await kept.client();
  client.send(command);
  await kept.pass(20);
  return client;
}

/** A client blocks, and leaves; the source gets its CLIENT UNBLOCK 100 ms late. */
async function leavesLate(kept: KeptWorld, command: string): Promise<void> {
  let port = 0;
  kept.source.onCommand = (address, [name, what]) => {
    if (name === 'CLIENT' && what === 'UNBLOCK') port = portOf(address);
  };
  (await blocks(kept, 'BLPOP any 0')).leave();
  await kept.until(() => port > 0, 'the server is asked to unblock a client');
  const client = await blocks(kept, command);
  kept.endOf(kept.source, port).other.silence(100);
  client.leave();
  await kept.pass(5);
}

test('What a client took is copied where a write that bypassed the proxy woke it', () =>
  KeptWorld.run(async (kept) => {
    const client = await blocks(kept, 'BLMOVE from to LEFT RIGHT 0');
    kept.bypass(kept.source, 'LPUSH from element');
    await kept.until(() => client.replies.length > 0, 'the client gets the element');
    await kept.until(() => kept.isClean, 'the workload is clean');
    await kept.pass(50);
    assert.deepEqual(kept.values('0 to'), [['element'], ['element']]);
  }));

test('A client that has left takes nothing that is pushed before the server has unblocked it', () =>
  KeptWorld.run(async (kept) => {
    await leavesLate(kept, 'BLPOP list 0');
    const pusher = await kept.client();
    await pusher.ask('RPUSH list element');
    assert.deepEqual(await pusher.ask('LRANGE list 0 -1'), ['$element']);
  }));

test('A CLIENT UNBLOCK on its way does not end the command of the next client of the lane', () =>
  KeptWorld.run(async (kept) => {
    await leavesLate(kept, 'BLPOP list 0');
    kept.bypass(kept.source, 'RPUSH list element');
    await kept.pass(5);
    const next = await blocks(kept, 'BLPOP other 0');
    await kept.pass(200);
    assert.deepEqual(next.replies, []);
  }));

test('A user who may run BLPOP and not LPOP gets an element that is there', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    await client.ask('RPUSH list element');
    kept.source.model.refuse((_, name) => (name === 'lpop' ? NOPERM : null));
    assert.deepEqual(await client.ask('BLPOP list 0'), ['$list', '$element']);
  }));

test('The journal has what a woken client took, though it was rotated while the client blocked', () =>
  KeptWorld.run(async (kept) => {
    const [writer, pusher] = [await kept.client(), await kept.client()];
    const waiter = await blocks(kept, 'BLMOVE from to LEFT RIGHT 0');
    kept.target.pause(100);
    await writer.ask('SET other v');
    kept.proxy.within(() => kept.proxy.parts!.journal.rotate());
    kept.source.onCommand = (address, [name]) => {
      if (name === 'LPUSH') kept.endOf(kept.source, portOf(address)).silence(1_000);
    };
    pusher.send('LPUSH from element');
    await kept.until(() => waiter.replies.length > 0, 'the waiter gets the element');
    await kept.until(() => kept.target.entry('0 other') !== undefined, 'the mirror runs');
    await kept.pass(50);
    assert.deepEqual(kept.values('0 to'), [['element'], null]);
    kept.proxy.kill();
    await kept.pass(100);
    kept.proxy.start();
    await kept.until(() => kept.proxy.launched !== null && kept.isClean, 'the shard is clean again');
    assert.deepEqual(kept.values('0 to'), [['element'], ['element']]);
  }));
