/**
 * Clients that wait, transactions beside them, messages: several connections to a model and to the real server.
 *
 * Needs real servers: replies to clients that block, beside those of the model.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needs } from '../../../../shadow-proxy/test/support/needs.js';
import { Wire } from '../../../../shadow-proxy/test/support/wire.js';
import { ModelServer } from '../../server/server.js';
import type { Engine } from '../../server/state.js';
import { ENGINES, ModelWire, REAL, startReal, type Words } from './duel.js';
import { Random, seedOf } from './random.js';

/** A command of one of the clients. */
interface Step {
  readonly client: number;
  readonly words: Words;
}

const CLIENTS = 5;
const LISTS = ['l0', 'l1', 'l2'];
const SETS = ['z0', 'z1'];
const STREAMS = ['s0', 's1'];

/** Commands that may wait without a limit: another step ends the wait, or the end of the program does. */
function waiting(random: Random, engine: Engine): Words {
  const list = (): string => random.pick(LISTS);
  const end = (): string => random.pick(['LEFT', 'RIGHT']);
  return random.pick<() => Words>([
    () => [random.pick(['BLPOP', 'BRPOP']), ...random.some(LISTS, 3), '0'],
    () => ['BRPOPLPUSH', list(), list(), '0'],
    () => ['BLMOVE', list(), list(), end(), end(), '0'],
    () => [random.pick(['BZPOPMIN', 'BZPOPMAX']), ...random.some(SETS, 2), '0'],
    () => ['XREAD', 'BLOCK', '0', 'STREAMS', ...STREAMS, '$', '$'],
    () => ['XREADGROUP', 'GROUP', 'g', random.pick(['c1', 'c2']), 'BLOCK', '0', 'STREAMS', random.pick(STREAMS), '>'],
    () => (engine === 'redis' ? ['BLMPOP', '0', '2', list(), list(), end(), 'COUNT', '2'] : ['BLPOP', list(), '0']),
    () => (engine === 'redis' ? ['BZMPOP', '0', '1', random.pick(SETS), 'MIN'] : ['BZPOPMIN', random.pick(SETS), '0']),
  ])();
}

function plain(random: Random): Words {
  const list = (): string => random.pick(LISTS);
  return random.pick<() => Words>([
    () => [random.pick(['LPUSH', 'RPUSH']), list(), ...random.some(['a', 'b', 'c'], 3)],
    () => [random.pick(['LPUSH', 'RPUSH']), list(), ...random.some(['a', 'b', 'c'], 3)],
    () => ['ZADD', random.pick(SETS), '1', random.pick(['a', 'b']), '2', 'c'],
    () => ['XADD', random.pick(STREAMS), `${random.below(1000)}-*`.replace('-*', ''), 'f', 'v'],
    () => ['XGROUP', 'CREATE', random.pick(STREAMS), 'g', '$', 'MKSTREAM'],
    () => ['XGROUP', 'DESTROY', random.pick(STREAMS), 'g'],
    () => ['DEL', random.pick([...LISTS, ...SETS, ...STREAMS])],
    () => ['SET', list(), 'text'],
    () => ['RENAME', list(), list()],
    () => ['RENAME', random.pick(STREAMS), random.pick([...STREAMS, 'other'])],
    () => ['COPY', list(), list(), 'REPLACE'],
    () => ['LPOP', list()],
    () => ['LRANGE', list(), '0', '-1'],
    () => ['SWAPDB', '0', '1'],
    () => ['FLUSHALL'],
    () => ['PUBLISH', 'news', 'text'],
    () => ['MULTI'],
    () => ['EXEC'],
    () => ['EXEC'],
    () => ['DISCARD'],
    () => ['WATCH', list()],
    () => ['BLPOP', list(), '-1'],
    () => ['BLPOP', list(), 'x'],
  ])();
}

function programOf(random: Random, engine: Engine, count: number): Step[] {
  return Array.from({ length: count }, () => ({
    client: random.below(CLIENTS),
    words: random.chance(0.3) ? waiting(random, engine) : plain(random),
  }));
}

/** Which clients wait, as CLIENT LIST says. */
const blockedIn = (list: string): string[] =>
  list
    .split('\n')
    .filter((line) => /flags=[^ ]*b/.test(line))
    .map((line) => / name=(\S*)/.exec(line)![1])
    .sort();

for (const engine of ENGINES)
  test(`the model of ${engine} serves waiting clients in the order of the server`, async (t) => {
    if (!(await needs(t, engine === 'redis' ? 'redis=7.0' : 'keydb'))) return;
    const real = await startReal(engine);
    const model = new ModelServer(engine, REAL);
    const seed = seedOf(31);
    t.diagnostic(`seed ${seed}`);
    const random = new Random(seed);
    const wires = await Promise.all(Array.from({ length: CLIENTS + 1 }, () => Wire.open({ port: real.port })));
    const models = wires.map(() => new ModelWire(model));
    const [control, controlled] = [wires[CLIENTS], models[CLIENTS]];
    const history: string[] = [];
    try {
      for (let i = 0; i < CLIENTS; i++) {
        await wires[i].ask('CLIENT', 'SETNAME', `c${i}`);
        models[i].ask(['CLIENT', 'SETNAME', `c${i}`]);
      }
      const waits = new Set<number>();
      for (const { client, words } of programOf(random, engine, 700)) {
        // A client that waits sends nothing; its wait is ended now and then.
        // KeyDB crashes where SWAPDB runs beside a client that waits, and Redis serves keys in the order of a hash.
        if (words[0] === 'SWAPDB' && (waits.size > 0 || models[client].client.client.multi !== null)) continue;
        const send: Words = waits.has(client) ? ['CLIENT', 'UNBLOCK', '0', 'ERROR'] : words;
        if (waits.has(client)) {
          if (!random.chance(0.2)) continue;
          const how = random.pick(['TIMEOUT', 'ERROR']);
          const ids = [await idOf(control, `c${client}`), modelIdOf(controlled, `c${client}`)];
          await control.ask('CLIENT', 'UNBLOCK', ids[0], how);
          controlled.ask(['CLIENT', 'UNBLOCK', ids[1], how]);
        } else {
          wires[client].send(...send);
          models[client].send(send);
        }
        history.push(`c${client}: ${send.join(' ')}`);
        const shown = history.slice(-40).join('\n');
        // Whether the command waits is the model's to say first; the server has time to agree.
        const expected = blockedIn(controlled.ask(['CLIENT', 'LIST'])!);
        const answered = models.slice(0, CLIENTS).map(({ frames }) => frames.length);
        await until(async () => {
          const blocked = blockedIn(await control.ask('CLIENT', 'LIST'));
          const enough = wires.slice(0, CLIENTS).every(({ unread }, at) => unread.length >= answered[at]);
          return enough && blocked.join() === expected.join();
        }).catch(async () => {
          const blocked = blockedIn(await control.ask('CLIENT', 'LIST'));
          assert.deepEqual(
            { blocked: expected, frames: models.map(({ frames }) => frames) },
            { blocked, frames: wires.map(({ unread }) => [...unread]) },
            shown,
          );
        });
        for (let at = 0; at < CLIENTS; at++) {
          const real = await wires[at].frames(wires[at].unread.length);
          assert.deepEqual(models[at].frames.splice(0), real, `c${at} after\n${shown}`);
        }
        waits.clear();
        for (const name of expected) waits.add(Number(name.slice(1)));
      }
    } finally {
      for (const wire of wires) wire.destroy();
      model.stopTimers();
      await real.stop();
    }
  });

test('the model of redis serves a waiting client from the database that SWAPDB brings', async (t) => {
  if (!(await needs(t, 'redis=7.0'))) return;
  const real = await startReal('redis');
  const model = new ModelServer('redis', REAL);
  const wires = await Promise.all([Wire.open({ port: real.port }), Wire.open({ port: real.port })]);
  const models = [new ModelWire(model), new ModelWire(model)];
  try {
    wires[0].send('BLPOP', 'l', '0');
    models[0].send(['BLPOP', 'l', '0']);
    while (!/flags=b/.test(await wires[1].ask('CLIENT', 'LIST')));
    for (const words of [
      ['SELECT', '1'],
      ['RPUSH', 'l', 'e', 'f'],
      ['SWAPDB', '0', '1'],
      ['LLEN', 'l'],
    ])
      assert.equal(models[1].ask(words), await wires[1].ask(...words), words.join(' '));
    assert.equal(models[0].frames.shift(), await wires[0].frame());
  } finally {
    for (const wire of wires) wire.destroy();
    await real.stop();
  }
});

test('the model of keydb crashes as KeyDB does where a client waits in a swapped database', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const real = await startReal('keydb');
  const model = new ModelServer('keydb', REAL);
  const wires = await Promise.all([Wire.open({ port: real.port }), Wire.open({ port: real.port })]);
  const models = [new ModelWire(model), new ModelWire(model)];
  const ask = async (client: number, ...words: string[]): Promise<void> =>
    assert.equal(models[client].ask(words), await wires[client].ask(...words), words.join(' '));
  try {
    await ask(0, 'SET', 'k', 'first');
    await ask(1, 'SWAPDB', '0', '1');
    await ask(0, 'GET', 'k');
    await ask(1, 'GET', 'k');
    await ask(1, 'SELECT', '1');
    await ask(1, 'GET', 'k');
    await ask(0, 'SELECT', '0');
    await ask(1, 'SELECT', '0');
    wires[0].send('BLPOP', 'l', '0');
    models[0].send(['BLPOP', 'l', '0']);
    while (!/flags=b/.test(await wires[1].ask('CLIENT', 'LIST')));
    await ask(1, 'SWAPDB', '0', '1');
    wires[1].send('RPUSH', 'l', 'e');
    models[1].send(['RPUSH', 'l', 'e']);
    await Promise.all(wires.map(({ closed }) => closed));
    assert.deepEqual([model.isDown, ...models.map(({ ended }) => ended)], [true, true, true]);
    assert.deepEqual(models.map(({ frames }) => frames), wires.map(({ unread }) => unread)); // prettier-ignore
  } finally {
    for (const wire of wires) wire.destroy();
    await real.stop();
  }
});

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 500; tries++) if (await holds()) return;
  throw new Error('not reached');
}

const idIn = (list: string, name: string): string =>
  / ?id=(\d+)/.exec(list.split('\n').find((line) => line.includes(` name=${name} `))!)![1];
const idOf = async (control: Wire, name: string): Promise<string> => idIn(await control.ask('CLIENT', 'LIST'), name);
const modelIdOf = (control: ModelWire, name: string): string => idIn(control.ask(['CLIENT', 'LIST'])!, name);
