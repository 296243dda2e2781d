/** Notices wait for receivers: order, repetition, bounds, what is dropped. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'node:test';
import { pino } from 'pino';
import { NoticeQueue } from '../../../src/notify/notice-queue.js';
import type { Answer } from '../../../src/notify/send.js';
import { aNotice, aReceiver, startReceiver } from '../../support/notices.js';
import { patienceMs } from '../../support/patience.js';
import { until } from '../../support/shard.js';

const LIMITS = { notices: 3, ageMs: 60_000, firstRetryMs: 5, lastRetryMs: 20 };

/** A log that is kept. */
function logged(): { readonly lines: string[]; readonly logger: pino.Logger } {
  const lines: string[] = [];
  return { lines, logger: pino({}, { write: (line: string) => void lines.push(line) }) };
}

describe('an outbox', () => {
  test('sends again what a receiver does not take yet, in order and with the same id, until it does', async (t) => {
    const receiver = await startReceiver(t);
    const { lines, logger } = logged();
    const outbox = new NoticeQueue(aReceiver({ url: receiver.url }), logger, LIMITS);
    receiver.answer = { status: 503, text: 'busy' };
    outbox.push(aNotice({ id: 'a' }));
    outbox.push(aNotice({ id: 'b' }));
    await until(() => outbox.snapshot.failedAttempts >= 3);
    receiver.answer = { status: 200, text: 'ok' };
    await until(() => outbox.snapshot.sent === 2);
    const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
    assert.deepEqual([ids.slice(0, 4).join(''), ids.slice(-2)], ['aaaa', ['a', 'b']]);
    assert.deepEqual(outbox.snapshot.dropped, { full: 0, expired: 0, refused: 0 });
    assert.equal(lines.length, 1, 'one line for all attempts');
    assert.match(lines[0], /"receiver":"ops","problem":"503 busy","msg":"a notification is not delivered: retrying"/);
  });

  test('waits as long as a receiver asks for', async (t) => {
    const receiver = await startReceiver(t);
    const outbox = new NoticeQueue(aReceiver({ url: receiver.url }), logged().logger, LIMITS);
    receiver.answer = { status: 429, text: 'slow down', headers: { 'retry-after': '1' } };
    outbox.push(aNotice());
    await until(() => outbox.snapshot.failedAttempts === 1);
    receiver.answer = { status: 200, text: 'ok' };
    // Longer than any wait between attempts, and shorter than the receiver asks for.
    await sleep(300);
    assert.equal(receiver.received.length, 1);
    await until(() => outbox.snapshot.sent === 1);
  });

  test('is bounded: of what does not fit the oldest is dropped, counted and logged', async () => {
    const { lines, logger } = logged();
    const sent: string[] = [];
    let open: (answer: Answer) => void = () => undefined;
    const outbox = new NoticeQueue(aReceiver(), logger, LIMITS, ({ id }) => {
      sent.push(id);
      return new Promise((resolve) => (open = resolve));
    });
    for (const id of ['a', 'b', 'c', 'd', 'e']) outbox.push(aNotice({ id, summary: `notice ${id}` }));
    assert.deepEqual(outbox.snapshot, {
      name: 'ops',
      queued: 3,
      sent: 0,
      failedAttempts: 0,
      dropped: { full: 2, expired: 0, refused: 0 },
    });
    assert.deepEqual(
      lines.map((line) => /dropped: (notice .)/.exec(line)?.[1]),
      ['notice b', 'notice c'],
    );
    for (const id of ['d', 'e', '']) {
      open({ outcome: 'accepted', text: '', afterMs: null });
      await until(() => id === '' || sent.at(-1) === id);
    }
    assert.deepEqual(sent, ['a', 'd', 'e'], 'what is on its way is not dropped');
  });

  test('drops what is refused or too old, and shows no secret in the log', async (t) => {
    const receiver = await startReceiver(t);
    const { lines, logger } = logged();
    const plan = aReceiver({ url: `${receiver.url}/services/secret-path`, secret: 'very-secret' });
    const outbox = new NoticeQueue(plan, logger, LIMITS);
    receiver.answer = { status: 403, text: 'no very-secret at services/secret-path' };
    outbox.push(aNotice());
    outbox.push(aNotice({ at: Date.now() - LIMITS.ageMs - 1 }));
    await until(() => outbox.snapshot.queued === 0);
    assert.deepEqual(outbox.snapshot.dropped, { full: 0, expired: 1, refused: 1 });
    assert.match(lines.join(''), /"problem":"403 no \*\*\* at \*\*\*"/);
    assert.doesNotMatch(lines.join(''), /very-secret|secret-path/);
  });

  test('reads of an answer only its beginning, and does not wait for its end', async (t) => {
    const server = createServer((_, response) => response.writeHead(400).write('no: '.padEnd(1000, 'x')));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.closeAllConnections());
    t.after(() => server.close());
    const { lines, logger } = logged();
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const outbox = new NoticeQueue(aReceiver({ url }), logger, LIMITS);
    outbox.push(aNotice());
    await until(() => outbox.snapshot.dropped.refused === 1, 5_000);
    assert.match(lines[0], /"problem":"400 no: x{192}"/);
  });

  test('takes only what its receiver is to be notified of, and follows a changed plan', async (t) => {
    const [first, second] = [await startReceiver(t), await startReceiver(t)];
    const outbox = new NoticeQueue(aReceiver({ url: first.url, events: ['outage'] }), logged().logger, LIMITS);
    outbox.push(aNotice());
    outbox.push(aNotice({ event: 'outage' }));
    await until(() => outbox.snapshot.sent === 1);
    outbox.reload(aReceiver({ url: second.url }));
    outbox.push(aNotice());
    await until(() => outbox.snapshot.sent === 2);
    assert.deepEqual([first.received.length, second.received.length], [1, 1]);
  });

  test('tries once more when the process ends, and does not hold it up', async () => {
    const { lines, logger } = logged();
    let attempts = 0;
    const later = (): Promise<Answer> => {
      attempts++;
      return Promise.resolve({ outcome: 'later', text: 'busy', afterMs: 60_000 });
    };
    const outbox = new NoticeQueue(aReceiver(), logger, LIMITS, later);
    outbox.push(aNotice());
    await until(() => attempts === 1);
    await outbox.close(1_000);
    assert.equal(attempts, 2);
    assert.match(lines.at(-1)!, /"notifications":1,"msg":"notifications were not sent before the proxy stopped"/);
    const deaf = new NoticeQueue(aReceiver(), logger, LIMITS, () => new Promise(() => undefined));
    deaf.push(aNotice());
    const before = performance.now();
    await deaf.close(50);
    assert.ok(performance.now() - before < patienceMs(500));
  });
});
