/**
 * Commands that wait: for gates, for a slow proxy, and what they say meanwhile.
 *
 * Needs real processes: what commands print while they wait, and Ctrl-C.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import type { Gate } from '../../../src/stages/gates.js';
import { jobSnapshot } from '../../support/snapshots.js';
import { Program, runCommand } from './process.js';

interface Answer {
  readonly status?: number;
  readonly body: object;
  readonly afterMs?: number;
}

interface Fake {
  readonly admin: string;
  /** The bodies of POST requests. */
  readonly asked: Record<string, unknown>[];
}

/** An admin server that answers what `answer` says; null closes the connection. */
async function fakeAdmin(
  t: TestContext,
  answer: (path: string, body: Record<string, unknown>) => Answer | null,
): Promise<Fake> {
  const asked: Record<string, unknown>[] = [];
  const bodyOf = async (request: IncomingMessage): Promise<Record<string, unknown>> => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
  };
  const server = createServer((request, response) => {
    void bodyOf(request).then(async (body) => {
      if (request.method === 'POST') asked.push(body);
      const found = answer(request.url!, body);
      if (found === null) return request.socket.destroy();
      await sleep(found.afterMs ?? 0);
      response.writeHead(found.status ?? 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(found.body));
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { admin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked } satisfies Fake;
}

const FROM = { stage: 'dualwrite', percent: 100 } as const;
const TO = { stage: 'shadow', percent: 100 } as const;
const gate = (more: Partial<Gate>): Gate =>
  ({ name: 'compared', answer: 'yes', evidence: 'as it is', ...more }) as Gate;

/** A proxy whose gate has this answer for `closedFor` ms, from the first question on. */
const promoting = (t: TestContext, closed: Partial<Gate>, closedFor: number): Promise<Fake> => {
  let began: number | undefined;
  return fakeAdmin(t, (_path, { dryRun }) => {
    began ??= performance.now();
    const isClosed = performance.now() - began < closedFor;
    const change = dryRun || isClosed ? null : { workload: 'sessions', from: FROM, to: TO, heldMs: 1 };
    const gates = [isClosed ? gate({ answer: 'no', ...closed }) : gate({})];
    return {
      body: { promotions: [{ shard: 'a', workload: 'sessions', from: FROM, to: TO, gates, targetKeys: null, change }] },
    };
  });
};

const promote = ({ admin }: Fake, ...more: string[]): string[] => ['promote', 'sessions', '--admin', admin, ...more];

test('promote waits for a gate that is seconds short, says for which, and moves the workload', async (t) => {
  const fake = await promoting(t, { opensInMs: 2_000 }, 2_500);
  const { code, stdout, stderr } = await runCommand(...promote(fake, '--wait', '30s'));
  assert.equal(code, 0, stderr);
  assert.match(stderr, /^Waiting for compared \(about 2 s\); at most 30 s, Ctrl-C stops\n/);
  assert.match(stdout, /sessions dualwrite → shadow, done/);
  assert.deepEqual([...new Set(fake.asked.map(({ dryRun }) => dryRun))], [true, undefined]);
});

test('promote waits neither for a gate that an operator has to open, nor longer than --wait', async (t) => {
  for (const [closed, ...options] of [
    [{ command: 'rollback sessions --drill' }, '--wait', '30s'],
    [{ opensInMs: 60_000 }, '--wait', '30s'],
    [{ opensInMs: 1_000 }, '--no-wait'],
    [{ opensInMs: 1_000 }],
  ] as const) {
    const fake = await promoting(t, closed, Infinity);
    const { code, stdout, stderr } = await runCommand(...promote(fake, ...options));
    assert.deepEqual([code, stderr], [1, ''], JSON.stringify(closed));
    assert.match(stdout, /A gate is closed: nothing was changed/);
    assert.equal(fake.asked.length, 1, 'the gates are judged once');
  }
});

test('Ctrl-C ends the wait of promote with 130, and nothing is changed', async (t) => {
  const fake = await promoting(t, { opensInMs: 20_000 }, Infinity);
  const program = new Program(t, 'shadow-compare', promote(fake, '--wait', '60s'));
  while (!program.stderr.includes('Waiting for compared')) await sleep(20);
  program.signal('SIGINT');
  assert.equal(await program.exit(), 130);
  assert.match(program.stderr, /Stopped waiting: nothing was changed\n$/);
  assert.ok(fake.asked.every(({ dryRun }) => dryRun));
});

/** A proxy whose gates have these answers, and that keeps what is written into its history. */
async function remembering(t: TestContext, gates: readonly Gate[]): Promise<Fake & { events: object[] }> {
  const events: object[] = [{ event: 'wait', workload: 'sessions', state: 'cancelled', what: 'last week' }];
  const fake = await fakeAdmin(t, (path, body) => {
    if (path === '/api/history') return { body: { history: [{ shard: 'a', events }] } };
    if (path === '/api/wait') {
      events.push({ event: 'wait', ...body });
      return { body: { shards: ['a'] } };
    }
    const change = body.dryRun ? null : { workload: 'sessions', from: FROM, to: TO, heldMs: 1 };
    const promotion = { shard: 'a', workload: 'sessions', from: FROM, to: TO, gates, targetKeys: null, change };
    return { body: { promotions: [promotion] } };
  });
  return { ...fake, events };
}

/** Such as `14:05`, so many minutes from now. */
const inMinutes = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toTimeString().slice(0, 5);

test('promote --at waits, and cancel ends that from any machine: nothing is changed', async (t) => {
  const fake = await remembering(t, [gate({})]);
  const nothing = await runCommand('cancel', 'sessions', '--admin', fake.admin);
  assert.deepEqual([nothing.code, nothing.stderr], [1, 'no promotion of sessions waits: nothing was changed\n']);
  const program = new Program(t, 'shadow-compare', promote(fake, '--at', inMinutes(120)));
  while (!program.stderr.includes('waits until')) await sleep(20);
  const cancelled = await runCommand('cancel', 'sessions', '--reason', 'a sale began', '--admin', fake.admin);
  assert.equal(cancelled.code, 0, cancelled.stderr);
  assert.match(cancelled.stdout, /^Cancelled: sessions to shadow, \w+ \d\d:\d\d, by \S+\. It ends within 5 s/);
  assert.equal(await program.exit(), 1);
  assert.match(program.stderr, /Cancelled: a sale began, by \S+\. Nothing was changed\n$/);
  assert.ok(fake.asked.filter(({ dryRun }) => dryRun === undefined).every(({ state }) => state !== undefined));
});

test('promote --window moves the workload at once while the window is open', async (t) => {
  const fake = await remembering(t, [gate({})]);
  const { code, stdout, stderr } = await runCommand(...promote(fake, '--window', `${inMinutes(-60)}-${inMinutes(60)}`));
  assert.equal(code, 0, stderr);
  assert.match(stdout, /sessions dualwrite → shadow, done/);
  assert.deepEqual(fake.asked.at(-1)?.to, 'shadow', 'the change is the one that was judged');
});

test('promote --at does not wait for a gate that an operator has to open', async (t) => {
  const fake = await remembering(t, [gate({ answer: 'no' }), gate({ name: 'time', answer: 'no', opensInMs: 60_000 })]);
  const { code, stdout, stderr } = await runCommand(...promote(fake, '--at', inMinutes(120)));
  assert.deepEqual([code, stderr], [1, '']);
  assert.match(stdout, /Not open by then without an action: compared\. Nothing waits, and nothing was changed/);
  assert.equal(fake.events.length, 1, 'the history says nothing of it');
});

test('a refused drill shows its gates as promote does, and the command that opens them', async (t) => {
  const gates = [gate({ answer: 'no', evidence: '3 suspect keys', command: 'verify --workload sessions --repair' })];
  const message = '"sessions" is not ready for a rollback drill: closed gates: compared';
  const error = { code: 'gates-closed', message, details: { workload: 'sessions', gates } };
  const { admin } = await fakeAdmin(t, () => ({ status: 409, body: { error } }));
  const { code, stderr } = await runCommand('rollback', 'sessions', '--drill', '--admin', admin);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^.*closed gates: compared\n┌.*\n│ NO +│ compared +│ 3 suspect keys +│\n└.*\nNext:\n {2}.*verify --workload sessions --repair --admin \S+\n$/,
  );
  assert.doesNotMatch(stderr, /[{}]/);
});

test('a proxy that answers late has a line after 5 s', async (t) => {
  const { admin } = await fakeAdmin(t, () => ({ body: { shards: [], starting: [], history: [] }, afterMs: 6_500 }));
  const { code, stderr } = await runCommand('history', '--admin', admin);
  assert.equal(code, 0);
  assert.match(stderr, new RegExp(`^Waiting for the proxy at ${admin} \\([56] s\\)\n$`));
});

test('a job that is followed says that the proxy does not answer, and goes on when it does', async (t) => {
  let began = Infinity;
  const { admin } = await fakeAdmin(t, (path) => {
    const running = performance.now() - began < 6_500;
    if (path === '/api/status') return { body: { migration: 'shop', shards: [] } };
    if (began === Infinity) began = performance.now();
    else if (running) return null;
    return {
      body: {
        jobs: [
          { shard: 'a', job: jobSnapshot({ kind: 'verify', differences: {}, state: running ? 'running' : 'done' }) },
        ],
      },
    };
  });
  const { code, stderr } = await runCommand('verify', '--admin', admin);
  assert.equal(code, 0, stderr);
  assert.match(stderr, new RegExp(`Waiting for the proxy at ${admin} \\([56] s\\)\n`));
});
