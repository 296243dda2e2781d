/** Wakeups: which clients they wait for, which keys they hold, and when their effects are appended. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyLocks, type BlockedClient, type WakeupEffect } from '../../../src/pipeline/key-locks.js';
import type { Lane } from '../../../src/pipeline/lane.js';
import { Wakeup } from '../../../src/pipeline/wakeup.js';
import type { Server } from '../../../src/upstream/server.js';
import { until } from '../../support/shard.js';

/** A server that says which of its connections block; null where it cannot be asked. */
function serverWith(blocked: () => readonly number[] | null) {
  const state = { asked: [] as number[][] };
  const server = {
    connections: {
      blocked: (ids: readonly number[]) => {
        state.asked.push([...ids]);
        const found = blocked();
        return found === null ? Promise.reject(new Error('down')) : Promise.resolve(new Set(found));
      },
    },
  } as unknown as Server;
  return { server, state };
}

let lastId = 0;
const client = (...waitsOn: string[]): BlockedClient => ({
  lane: { clientId: ++lastId } as unknown as Lane,
  keys: waitsOn,
  waitsOn,
  destination: null,
  wakeup: null,
  unordered: false,
});

/** @param domains by their letters; `*` for all */
const took = (domains: string, log: string[]): WakeupEffect => ({
  domains: domains === '*' ? null : [...domains],
  replicate: (ordered) => void log.push(`${domains} ${ordered ? 'in order' : 'in any order'}`),
});

const turns = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
};

test('a second wakeup leaves the client to the first one, which ends when the client has answered', async () => {
  const locks = new KeyLocks();
  const blockedClient = client('q', 'other');
  locks.block(blockedClient);
  const { server } = serverWith(() => []);
  const first = new Wakeup(locks, server, ['q'], locks.wokenBy(['q']));
  const second = new Wakeup(locks, server, ['other'], locks.wokenBy(['other']));
  assert.equal(blockedClient.wakeup, first);
  const over: string[] = [];
  first.after(() => over.push('first'));
  second.after(() => over.push('second'));
  second.answered();
  assert.deepEqual(over, ['second'], 'it waits for nobody');
  first.answered();
  await turns();
  assert.deepEqual(over, ['second'], 'its client has not answered');
  const log: string[] = [];
  first.settled(blockedClient, took('q', log));
  assert.deepEqual([over, log, blockedClient.wakeup], [['second', 'first'], ['q in order'], null]);
  assert.deepEqual(locks.reservedSince(), []);
});

test('it holds its own keys and all keys of its clients, until it is over', async () => {
  const locks = new KeyLocks();
  const blockedClient = client('q', 'other');
  locks.block(blockedClient);
  const { server } = serverWith(() => []);
  const wakeup = new Wakeup(locks, server, ['q', 'mine'], locks.wokenBy(['q']));
  const held = (): boolean[] => ['q', 'other', 'mine', 'free'].map((key) => !locks.admits(null, [key], true));
  assert.deepEqual(held(), [true, true, true, false]);
  wakeup.answered();
  await turns();
  assert.deepEqual(held(), [true, true, true, false]);
  wakeup.settled(blockedClient, null);
  assert.deepEqual(held(), [false, false, false, false]);
});

test('a client that still blocks is not waited for; the server is asked after the write was answered', async () => {
  const locks = new KeyLocks();
  const [still, woken] = [client('q'), client('q')];
  locks.block(still);
  locks.block(woken);
  const { server, state } = serverWith(() => [(still.lane as Lane).clientId]);
  const wakeup = new Wakeup(locks, server, ['q'], locks.wokenBy(['q']));
  let over = false;
  wakeup.after(() => (over = true));
  await turns();
  assert.deepEqual(state.asked, [], 'not before the write was answered');
  wakeup.answered();
  await turns();
  assert.deepEqual(state.asked[0], [(still.lane as Lane).clientId, (woken.lane as Lane).clientId]);
  assert.deepEqual([over, still.wakeup, woken.wakeup], [false, null, wakeup]);
  wakeup.settled(woken, null);
  assert.equal(over, true);
});

test('what several took has a known order only if they have no domain in common', async () => {
  for (const [domains, expected] of [
    [
      ['q', 'r'],
      ['q in order', 'r in order'],
    ],
    [
      ['q', 'q'],
      ['q in any order', 'q in any order'],
    ],
    [
      ['qr', 'rq', 's'],
      ['qr in any order', 'rq in any order', 's in order'],
    ],
    [
      ['q', '*'],
      ['q in any order', '* in any order'],
    ],
    [['*'], ['* in order']],
  ] as const) {
    const locks = new KeyLocks();
    const clients = domains.map(() => client('k'));
    clients.forEach((each) => locks.block(each));
    const { server } = serverWith(() => []);
    const wakeup = new Wakeup(locks, server, ['k'], locks.wokenBy(['k']));
    const log: string[] = [];
    clients.forEach((each, i) => wakeup.settled(each, took(domains[i], log)));
    assert.deepEqual(log, [], 'the effect of the write comes first');
    wakeup.answered();
    assert.deepEqual(log, expected);
  }
});

test('a server that cannot be asked is asked again; the wakeup goes on waiting', async () => {
  const locks = new KeyLocks();
  const blockedClient = client('q');
  locks.block(blockedClient);
  let answers = 0;
  const { server, state } = serverWith(() => (++answers < 3 ? null : [(blockedClient.lane as Lane).clientId]));
  const wakeup = new Wakeup(locks, server, ['q'], locks.wokenBy(['q']));
  const over = new Promise<void>((resolve) => wakeup.after(resolve));
  wakeup.answered();
  await over;
  assert.deepEqual([state.asked.length, blockedClient.wakeup], [3, null]);
});

test('when the write’s connection is lost, its clients are free, and its keys, too', () => {
  const locks = new KeyLocks();
  const blockedClient = client('q');
  locks.block(blockedClient);
  const wakeup = new Wakeup(locks, serverWith(() => []).server, ['q'], locks.wokenBy(['q']));
  let over = 0;
  wakeup.after(() => over++);
  wakeup.lost();
  assert.deepEqual([over, blockedClient.wakeup, locks.reservedSince()], [1, null, []]);
  wakeup.answered();
  wakeup.after(() => over++);
  assert.equal(over, 2, 'once, and at once for who comes later');
});

const replyOf = (length: number): Buffer => Buffer.from(`:${length}\r\n`);

/** A push of so many elements, to a list on which the clients block; the server is asked for `state`. */
function push(elements: number, clients: readonly BlockedClient[]) {
  const locks = new KeyLocks();
  clients.forEach((each) => locks.block(each));
  const { server, state } = serverWith(() => []);
  const wakeup = new Wakeup(locks, server, ['q'], locks.wokenBy(['q']), elements);
  return { wakeup, state, locks };
}

test('once a push’s elements are taken, the other clients are let go, and the server is not asked', async () => {
  for (const repliesFirst of [false, true]) {
    const clients = [client('q'), client('q'), client('q')];
    const { wakeup, state, locks } = push(2, clients);
    const log: string[] = [];
    const take = (): void => clients.slice(0, 2).forEach((each) => wakeup.settled(each, took('q', log)));
    if (repliesFirst) take();
    wakeup.answered(replyOf(2));
    assert.equal(clients[2].wakeup, repliesFirst ? null : wakeup);
    if (!repliesFirst) take();
    assert.deepEqual([clients[2].wakeup, locks.reservedSince(), log.length, state.asked], [null, [], 2, []]);
  }
});

test('what a client took nothing of is still to be taken', () => {
  const clients = [client('q'), client('q')];
  const { wakeup } = push(1, clients);
  wakeup.answered(replyOf(1));
  wakeup.settled(clients[0], null);
  assert.equal(clients[1].wakeup, wakeup);
  wakeup.settled(clients[1], null);
});

test('the server is asked where the list was not empty, a client has other keys, or writes one when it is woken', async () => {
  const moves = { ...client('q'), keys: ['q', 'to'], destination: 'to' };
  for (const [length, others] of [
    [2, [client('q')]],
    [1, [client('q', 'other')]],
    [1, [moves]],
  ] as const) {
    const first = client('q');
    const { wakeup, state } = push(1, [first, ...others]);
    wakeup.answered(replyOf(length));
    assert.deepEqual(
      state.asked[0],
      [first, ...others].map(({ lane }) => (lane as Lane).clientId),
    );
    wakeup.settled(first, took('q', []));
    assert.equal(others[0].wakeup, wakeup);
    wakeup.settled(others[0], null);
  }
});

test('a push whose clients do not answer within a moment has the server asked', async () => {
  const clients = [client('q')];
  const { wakeup, state } = push(1, clients);
  wakeup.answered(replyOf(1));
  assert.deepEqual(state.asked, []);
  await until(() => state.asked.length > 0);
  wakeup.settled(clients[0], null);
});

test('while a blocking command is on its way, the server is asked about it alone, and its effect comes first', async () => {
  const locks = new KeyLocks();
  const [writer, woken] = [client('from'), client('to')];
  locks.block(woken);
  const { server, state } = serverWith(() => [(woken.lane as Lane).clientId]);
  const wakeup = new Wakeup(locks, server, ['from', 'to'], locks.wokenBy(['to']), 0, writer);
  wakeup.answered();
  await turns();
  assert.deepEqual(state.asked[0], [(writer.lane as Lane).clientId]);
  assert.equal(woken.wakeup, wakeup, 'the command may not have run when the server said so');
  const log: string[] = [];
  wakeup.settled(woken, took('*', log));
  wakeup.settled(writer, { domains: null, replicate: (ordered) => void log.push(ordered ? 'first' : 'in any order') });
  assert.deepEqual([log, locks.withheld, locks.reservedSince()], [['first', '* in order'], 0, []]);
});

test('a blocking command that is seen blocked has woken no client', async () => {
  const locks = new KeyLocks();
  const [writer, other] = [client('from'), client('to')];
  locks.block(other);
  const { server } = serverWith(() => [(writer.lane as Lane).clientId]);
  const wakeup = new Wakeup(locks, server, ['from', 'to'], locks.wokenBy(['to']), 0, writer);
  wakeup.answered();
  await turns();
  assert.deepEqual([writer.wakeup, other.wakeup, locks.reservedSince()], [null, null, []]);
});
