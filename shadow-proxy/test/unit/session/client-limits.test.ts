/** What clients may take, and for how long they may do nothing: at, below and above each limit. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ClientLimits, type ClientBounds, type ClientUsage } from '../../../src/session/client-limits.js';
import { FakeClock } from '../../support/fake-clock.js';

const clock = FakeClock.install();

const MIB = 1 << 20;
const BOUNDS: ClientBounds = {
  clientOutputBytes: MIB,
  totalClientBytes: 64 * MIB,
  transactionBytes: MIB,
  loginMs: 10_000,
  idleMs: 5_000,
};

type Client = ClientUsage & { readonly closed: boolean; bytes: number };

function client({ bytes = 0, mustLogIn = false, isIdle = false, activeAt = clock.now } = {}): Client {
  const socket = { destroyed: false, destroy: () => (socket.destroyed = true) };
  return {
    ...{
      bytes,
      mustLogIn,
      isIdle,
      client: { socket, connectedAt: clock.now, activeAt } as unknown as ClientUsage['client'],
    },
    get closed() {
      return socket.destroyed;
    },
  };
}

/** They look at clients each second from now on. */
function limits(t: TestContext, clients: readonly Client[], bounds: Partial<ClientBounds> = {}): ClientLimits {
  const all = new ClientLimits(new Map(clients.map((each, i) => [i, each])), { ...BOUNDS, ...bounds });
  t.after(() => all.end());
  return all;
}

test('clients may take all of their memory; a byte more, and the one that takes most is closed', async (t) => {
  for (const [bytes, closed] of [
    [64 * MIB - 1, []],
    [64 * MIB, []],
    [64 * MIB + 1, ['most']],
    [64 * MIB + 1 + 40 * MIB, ['most']],
  ] as const) {
    const few = 10 * MIB;
    const clients = { few: client({ bytes: few }), most: client({ bytes: bytes - few }) };
    const all = limits(t, Object.values(clients));
    await clock.advance(1_000);
    assert.deepEqual(
      Object.entries(clients).flatMap(([name, each]) => (each.closed ? [name] : [])),
      closed,
      `${bytes} bytes`,
    );
    assert.deepEqual([all.closed.memory, all.bytes], [closed.length, closed.length > 0 ? few : bytes]);
    all.end();
  }
});

test('the next one is closed, too, where one is not enough; none where what is left is just the bound', async (t) => {
  for (const [sizes, closed] of [
    [[30, 25, 20, 20], 2],
    [[31, 24, 20, 20], 1],
  ] as const) {
    const clients = sizes.map((mib) => client({ bytes: mib * MIB }));
    const all = limits(t, clients);
    await clock.advance(1_000);
    assert.deepEqual(
      clients.map((each) => each.closed),
      clients.map((_, i) => i < closed),
    );
    assert.equal(all.closed.memory, closed);
    all.end();
  }
});

test('memory is added up at once when clients may have taken a sixteenth of it more', async (t) => {
  for (const [grown, closed] of [
    [4 * MIB, false],
    [4 * MIB + 1, true],
  ] as const) {
    const large = client({ bytes: 65 * MIB });
    const all = limits(t, [large]);
    all.grew(grown - 1);
    assert.equal(large.closed, false);
    all.grew(1);
    assert.equal(large.closed, closed, `${grown} bytes`);
    all.end();
  }
});

test('of a small bound, when they may have taken 1 MiB more', async (t) => {
  const large = client({ bytes: 2 * MIB });
  const all = limits(t, [large], { totalClientBytes: MIB });
  all.grew(MIB);
  assert.equal(large.closed, false);
  all.grew(1);
  assert.equal(large.closed, true);
});

test('a client that has to log in is closed at the first look after its time, and no other', async (t) => {
  const [stranger, known] = [client({ mustLogIn: true }), client()];
  const all = limits(t, [stranger, known]);
  await clock.advance(10_000);
  assert.equal(stranger.closed, false, 'exactly its time');
  await clock.advance(1_000);
  assert.deepEqual([stranger.closed, known.closed, all.closed.login], [true, false, 1]);
});

test('a client that is idle for longer than it may be is closed, not one that waits for something; 0 is never', async (t) => {
  for (const [idleMs, closes] of [
    [5_000, true],
    [0, false],
  ] as const) {
    const [idle, waits] = [client({ isIdle: true }), client()];
    const all = limits(t, [idle, waits], { idleMs });
    await clock.advance(5_000);
    assert.equal(idle.closed, false, 'exactly its time');
    await clock.advance(1_000);
    assert.deepEqual([idle.closed, waits.closed, all.closed.idle], [closes, false, Number(closes)]);
    await clock.advance(86_400);
    assert.equal(idle.closed, closes);
    all.end();
  }
});
