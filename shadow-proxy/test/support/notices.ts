/** Notices for tests, and receivers of HTTP that keep what they get. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { Notice } from '../../src/notify/notice.js';
import type { ReceiverPlan } from '../../src/plan/plan.js';
import { NOTIFY_EVENTS } from '../../src/plan/plan.js';

export const aNotice = (change: Partial<Notice> = {}): Notice => ({
  id: 'id-1',
  event: 'mismatch',
  state: 'firing',
  severity: 'critical',
  key: 'cache-0/sessions/mismatch',
  since: Date.now() - 1000,
  shard: 'cache-0',
  workload: 'sessions',
  summary: '2 mismatches <in> workload sessions & more',
  details: { mismatches: 2 },
  migration: 'checkout',
  at: Date.now(),
  ...change,
});

export const aReceiver = (change: Partial<ReceiverPlan> = {}): ReceiverPlan => ({
  name: 'ops',
  kind: 'webhook',
  url: 'http://127.0.0.1:9/hook-of-ops',
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  events: NOTIFY_EVENTS,
  ...change,
});

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly body: any;
}

export interface HttpReceiver {
  readonly url: string;
  readonly received: readonly Received[];
  /** What it answers from now on. */
  answer: { readonly status: number; readonly text: string; readonly headers?: Readonly<Record<string, string>> };
}

/** Listens on this machine until the test ends. */
export async function startReceiver(t: TestContext): Promise<HttpReceiver> {
  const received: Received[] = [];
  const receiver: HttpReceiver & { url: string } = { url: '', received, answer: { status: 200, text: 'ok' } };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      received.push({ path: request.url!, headers: request.headers, text, body: JSON.parse(text) });
      const { status, text: said, headers = {} } = receiver.answer;
      response.writeHead(status, headers).end(said);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return receiver;
}
