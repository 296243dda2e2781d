/**
 * What a client of the Sentinel cannot do: guess passwords, fill its memory, stay without a login.
 *
 * Needs real sockets: clients that guess, flood or do not log in, and TLS.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { freePort } from '../../../src/local/port.js';
import { encodeCommand } from '../../../src/resp/encode.js';
import { Sentinel, SentinelError } from '../../../src/sentinel/sentinel.js';
import { needs } from '../../support/needs.js';
import { patienceMs } from '../../support/patience.js';
import { smallPlan, toPlan, type PlanObject } from '../../support/plans.js';
import { makeCertificates } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';

interface Options {
  readonly password?: string | null;
  readonly limits?: PlanObject;
  readonly change?: (sentinel: PlanObject) => void;
}

async function start(
  t: TestContext,
  { password = null, limits = {}, change = () => undefined }: Options = {},
): Promise<Sentinel> {
  const port = await freePort();
  const sentinel = { listen: `redis://127.0.0.1:${port}`, masters: [{ name: 'main', shard: 'a' }] };
  change(sentinel);
  const plan = toPlan({ ...smallPlan(), sentinel, limits });
  const made = new Sentinel({ ...plan.sentinel!, password }, plan.limits, plan.name);
  await made.open();
  t.after(() => made.stop());
  return made;
}

const look = ({ masters }: Sentinel, port: number): void =>
  masters.looked('a', {
    holder: { process: String(port), places: { service: `127.0.0.1:${port}`, sentinel: '' } },
    isDown: false,
  });

test('the eleventh wrong password of a minute is answered late, and what the client sent after it, too', async (t) => {
  const sentinel = await start(t, { password: 'right' });
  const wire = await Wire.open(sentinel);
  const wrong = encodeCommand(['AUTH', 'wrong']);
  wire.sendBytes(Buffer.concat(Array.from({ length: 10 }, () => wrong)));
  for (let i = 0; i < 10; i++) assert.match(await wire.frame(), /^-WRONGPASS/);
  const since = performance.now();
  wire.sendBytes(Buffer.concat([wrong, encodeCommand(['AUTH', 'right']), encodeCommand(['PING'])]));
  assert.match(await wire.frame(), /^-WRONGPASS/);
  assert.ok(performance.now() - since >= 990, 'a second later');
  assert.deepEqual([await wire.frame(), await wire.frame()], ['+OK', '+PONG']);
  wire.destroy();
});

test('a client that does not log in in time is closed, and gets no event', async (t) => {
  const sentinel = await start(t, { password: 'right', limits: { loginMs: 300 } });
  const [wire, known] = [await Wire.open(sentinel), await Wire.open(sentinel)];
  wire.send('SUBSCRIBE', '+monitor');
  assert.equal(await wire.frame(), '-NOAUTH Authentication required.');
  for (const line of [
    ['AUTH', 'right'],
    ['SUBSCRIBE', '+monitor'],
  ]) {
    known.send(...line);
    await known.frame();
  }
  look(sentinel, 6400);
  assert.match(await known.frame(), /\+monitor\r\n.*\r\nmaster main 127\.0\.0\.1 6400/s);
  await wire.closed;
  assert.deepEqual(wire.unread, []);
  assert.equal(known.ended, false);
  known.destroy();
});

test('a reload changes the password', async (t) => {
  const sentinel = await start(t, { password: 'first' });
  const plan = toPlan({
    ...smallPlan(),
    sentinel: { listen: 'redis://127.0.0.1:26379', masters: [{ name: 'main', shard: 'a' }] },
  });
  sentinel.reload(plan, { ...plan.sentinel!, password: 'second' });
  const wire = await Wire.open(sentinel);
  for (const [password, reply] of [
    ['first', /^-WRONGPASS/],
    ['second', /^\+OK/],
  ] as const) {
    wire.send('AUTH', password);
    assert.match(await wire.frame(), reply);
  }
  wire.destroy();
});

test('a client beyond the maximum gets an error', async (t) => {
  const sentinel = await start(t, { limits: { clients: 1 } });
  const first = await Wire.open(sentinel);
  first.send('PING');
  assert.equal(await first.frame(), '+PONG');
  const second = await Wire.open(sentinel);
  assert.equal(await second.frame(), '-ERR max number of clients reached');
  await second.closed;
  first.destroy();
});

test('a client cannot fill the memory: by arguments, by subscriptions, by what it does not read', async (t) => {
  const sentinel = await start(t);
  const long = await Wire.open(sentinel);
  long.send('PING', 'x'.repeat(16_385));
  assert.equal(await long.frame(), '-ERR Protocol error: invalid bulk length');
  await long.closed;

  const unfinished = await Wire.open(sentinel);
  unfinished.sendBytes(Buffer.from('*100\r\n'));
  const argument = Buffer.from(`$16384\r\n${'x'.repeat(16_384)}\r\n`);
  for (let i = 0; i < 99 && !unfinished.ended; i++) unfinished.sendBytes(argument);
  await unfinished.closed;

  const many = await Wire.open(sentinel);
  many.send('SUBSCRIBE', ...Array.from({ length: 1_001 }, (_, i) => String(i)));
  assert.match(await many.frame(), /^-ERR shadow-proxy: at most 1000 subscriptions/);
  many.destroy();

  const idle = await Wire.open(sentinel);
  // Each of these patterns matches each event.
  const patterns = Array.from({ length: 500 }, (_, i) => '*'.repeat(1 + i));
  idle.send('PSUBSCRIBE', ...patterns);
  await idle.frames(patterns.length);
  idle.socket.pause();
  let closed = false;
  idle.socket.on('close', () => (closed = true));
  const deadline = performance.now() + patienceMs(20_000);
  for (let port = 1; sentinel.clients > 0 && performance.now() < deadline; port++) {
    look(sentinel, port);
    await new Promise(setImmediate);
  }
  assert.equal(sentinel.clients, 0);
  idle.socket.resume();
  await until(() => closed, 20_000);
});

test('it speaks TLS', async (t) => {
  if (!(await needs(t, 'openssl'))) return;
  const { ca, cert, key } = makeCertificates();
  const sentinel = await start(t, {
    change(each) {
      each.listen = each.listen.replace('redis:', 'rediss:');
      each.tls = { listen: { cert, key } };
    },
  });
  const wire = await Wire.open({ port: sentinel.port, tls: { ca: readFileSync(ca) } });
  wire.send('PING');
  assert.equal(await wire.frame(), '+PONG');
  wire.destroy();
});

test('no address is opened twice', async (t) => {
  const sentinel = await start(t);
  await assert.rejects(
    start(t, { change: (each) => (each.listen = `redis://127.0.0.1:${sentinel.port}`) }),
    (problem: Error) =>
      problem instanceof SentinelError && /is taken: set another sentinel\.listen/.test(problem.message),
  );
});
