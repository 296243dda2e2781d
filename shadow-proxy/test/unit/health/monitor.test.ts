/** From when on a server is down: to the millisecond, on a clock that the test moves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HealthMonitor } from '../../../src/health/monitor.js';
import { listenedMs, monotonicMs } from '../../../src/io/clock.js';
import { decodeReply, type Reply } from '../../../src/resp/decode.js';
import type { Side } from '../../../src/route/stage.js';
import type { Server } from '../../../src/upstream/server.js';
import { FakeClock } from '../../support/fake-clock.js';

const clock = FakeClock.install();
listenedMs();

const reply = (frame: string): Reply => decodeReply(Buffer.from(frame), 0).reply;
const PONG = '+PONG\r\n';

interface Monitored {
  readonly monitor: HealthMonitor;
  /** What it answers; null where the connection is lost, undefined where nothing comes. */
  answers: string | null | undefined;
  /** Whether it answers PING in any case, as KeyDB does while it loads. */
  answersPing: boolean;
  isNeeded: boolean;
  mayBeBusy: boolean;
  /** When it last replied to a command, in ms of the clock. */
  repliedAt: number;
  /** How often it was said to be down. */
  downs: number;
  answer(frame: string): void;
}

/** A monitor of a source that answers as the test says, from a whole second of the clock on. */
async function monitored(downAfterMs = 1_000): Promise<Monitored> {
  await clock.advance(1_000 - (clock.now % 1_000));
  const open: ((reply: Reply) => void)[] = [];
  const server = (side: Side): Server =>
    ({
      side,
      refuse: () => undefined,
      ask: (command: string) =>
        command === 'PING' && scene.answersPing
          ? Promise.resolve(reply(PONG))
          : typeof scene.answers === 'string'
            ? Promise.resolve(reply(scene.answers))
            : scene.answers === null
              ? Promise.reject(new Error('lost'))
              : new Promise<Reply>((resolve) => open.push(resolve)),
    }) as unknown as Server;
  const scene: Monitored = {
    answers: PONG,
    ...{ answersPing: false, isNeeded: true, mayBeBusy: false, repliedAt: -Infinity, downs: 0 },
    monitor: new HealthMonitor({
      servers: { source: server('source'), target: server('target') },
      authorities: { isNeeded: (side) => side === 'source' && scene.isNeeded },
      mayBeBusy: () => scene.mayBeBusy,
      repliedAt: () => scene.repliedAt,
      downAfterMs: () => downAfterMs,
      down: () => scene.downs++,
    }),
    answer(frame: string) {
      for (const resolve of open.splice(0)) resolve(reply(frame));
    },
  };
  scene.monitor.watch();
  return scene;
}

const LOADING = '-LOADING it is loading the dataset in memory\r\n';

for (const [answers, how, answersPing] of [
  [undefined, 'says nothing', false],
  [null, 'loses the connection', false],
  [LOADING, 'loads its data', false],
  [LOADING, 'loads its data, and answers PING', true],
] as const) {
  test(`a server that ${how} is down after so long, and not a millisecond before`, async () => {
    const scene = await monitored();
    Object.assign(scene, { answers, answersPing });
    // The first question.
    await clock.advance(250);
    await clock.advance(999);
    assert.deepEqual([scene.monitor.silentMs('source'), scene.monitor.isDown('source')], [999, false]);
    await clock.advance(1);
    assert.deepEqual([scene.monitor.silentMs('source'), scene.monitor.isDown('source')], [1_000, true]);
    await clock.advance(1_000);
    // At each look.
    assert.ok(scene.downs >= 2, `${scene.downs} times`);
    scene.monitor.stop();
  });
}

test('any other error is an answer', async () => {
  const scene = await monitored();
  scene.answers = '-NOAUTH Authentication required.\r\n';
  await clock.advance(5_000);
  assert.deepEqual([scene.monitor.silentMs('source'), scene.downs], [0, 0]);
  scene.monitor.stop();
});

test('an answer to the oldest question ends the silence, however late', async () => {
  const scene = await monitored();
  scene.answers = undefined;
  await clock.advance(1_249);
  scene.answer(PONG);
  scene.answers = PONG;
  await clock.advance(1);
  assert.equal(scene.monitor.silentMs('source'), 0);
  await clock.advance(1_000);
  assert.equal(scene.downs, 0);
  scene.monitor.stop();
});

test('a server that may be running a script is not down, and one that nobody needs is not silent', async () => {
  const scene = await monitored();
  scene.answers = undefined;
  scene.mayBeBusy = true;
  await clock.advance(3_000);
  assert.deepEqual([scene.monitor.isDown('source'), scene.downs], [false, 0]);
  scene.mayBeBusy = false;
  assert.equal(scene.monitor.isDown('source'), true);
  scene.isNeeded = false;
  assert.deepEqual([scene.monitor.silentMs('source'), scene.monitor.isDown('source')], [0, false]);
  // And when it is needed again, its silence begins then.
  await clock.advance(500);
  scene.isNeeded = true;
  scene.answers = undefined;
  await clock.advance(250);
  assert.ok(scene.monitor.silentMs('source') <= 500);
  scene.monitor.stop();
});

test('while the event loop is late, no server is silent', async () => {
  const scene = await monitored();
  scene.answers = undefined;
  await clock.advance(250);
  for (let i = 0; i < 3; i++) {
    clock.jump(1_000);
    await clock.settle();
  }
  assert.equal(scene.monitor.isDown('source'), false);
  scene.monitor.stop();
});

test('a server that loads its data is down although a script is on its way, which it does not run then', async () => {
  const scene = await monitored();
  Object.assign(scene, { answers: LOADING, answersPing: true, mayBeBusy: true });
  await clock.advance(250);
  await clock.advance(1_000);
  assert.equal(scene.monitor.isDown('source'), true);
  scene.answers = undefined;
  await clock.advance(500);
  assert.equal(scene.monitor.isDown('source'), false, 'one that says nothing may be running it');
});

test('a server that has replied to a command is down only when it has been silent for so long since then', async () => {
  const scene = await monitored();
  scene.answers = undefined;
  scene.mayBeBusy = true;
  await clock.advance(3_000);
  Object.assign(scene, { mayBeBusy: false, repliedAt: monotonicMs() });
  await clock.advance(999);
  assert.deepEqual([scene.monitor.isDown('source'), scene.downs], [false, 0]);
  await clock.advance(1);
  assert.equal(scene.monitor.isDown('source'), true);
  scene.monitor.stop();
});
