/**
 * The driver can be trusted: a seed repeats it, it sends every command, and it notices a server that answers wrongly.
 *
 * Needs real servers: that the trial's random commands succeed at a real Redis, and that it sees faults.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { COMMANDS } from '../../../src/command/table.generated.js';
import { startRedis, type LocalServer } from '../../../src/local/servers.js';
import { APP_USER, drive, type DriverReport } from './driver.js';
import { Generator } from './generator.js';
import { talk, type TalkReport } from './pubsub.js';

const generated = (seed: number, connection: number): string => {
  const generator = new Generator({
    seed,
    connection,
    prefixes: ['a:', 'b:'],
    keysPerType: 8,
    expiring: true,
    barriers: true,
    now: () => 1_800_000_000_000,
  });
  return JSON.stringify(Array.from({ length: 3000 }, () => generator.next()));
};

test('a seed repeats the same commands, and each connection has its own', () => {
  assert.equal(generated(7, 3), generated(7, 3));
  assert.notEqual(generated(7, 3), generated(8, 3));
  assert.notEqual(generated(7, 3), generated(7, 4));
});

/** Not every server's (functions), of clusters or of administration, or sent by the driver in its own way. */
const LEFT_OUT = new Set([
  ...['fcall', 'fcall_ro', 'function'],
  ...['migrate', 'restore-asking', 'pfdebug', 'pfselftest', 'memory', 'flushall', 'lolwut'],
]);

async function withRedis(body: (server: LocalServer) => Promise<void>): Promise<void> {
  const server = await startRedis({ config: { user: [APP_USER.acl] } });
  try {
    await body(server);
  } finally {
    await server.stop();
  }
}

/** What a release after Redis 7.0 added: KeyDB has none of it, and each has tests of its own. */
const OF_REDIS_70 = new Set(COMMANDS.filter(([, sourceArity]) => sourceArity !== 0).map(([name]) => name));

/** In so many come most commands at least once. */
const OPERATIONS = 40_000;

test('every reading and writing command that the server has of Redis 7.0 is sent, and succeeds', async (t) => {
  await withRedis(async (server) => {
    const client = new Redis({ port: server.port, protocol: 2 });
    t.after(() => client.disconnect());
    const listed = (await client.call('COMMAND')) as [string, number, string[]][];
    const commands = listed.filter(
      ([name, , flags]) => (flags.includes('readonly') || flags.includes('write')) && !LEFT_OUT.has(name),
    );
    const newer = commands.flatMap(([name]) => (OF_REDIS_70.has(name) ? [] : [name]));
    if (newer.length > 0) t.diagnostic(`NOT SENT, being newer than Redis 7.0: ${newer.join(' ')}`);
    const succeeded = new Set<string>();
    const totals = { operations: 0, transactions: 0, vanished: 0 };
    let missing: string[] = [];
    for (let seed = 1; seed <= 12; seed++) {
      // Each drive counts from the beginning.
      await client.flushall();
      const isEnough = ({ operations }: DriverReport): boolean => operations >= OPERATIONS;
      const report = await drive({ port: server.port, seed, durationMs: 0, isEnough });
      assert.deepEqual(report.violations, [], `seed ${report.seed}`);
      for (const what of ['operations', 'transactions', 'vanished'] as const) totals[what] += report[what];
      for (const [name, { ok }] of report.commands) if (ok > 0) succeeded.add(name.split(' ')[0].toLowerCase());
      missing = commands.map(([name]) => name).filter((name) => OF_REDIS_70.has(name) && !succeeded.has(name));
      if (missing.length === 0) break;
    }
    assert.deepEqual(missing, []);
    assert.ok(totals.operations > 1_000 && totals.transactions > 20 && totals.vanished > 0, JSON.stringify(totals));
  });
});

/** A proxy that does one thing wrong: `spoil` sees every chunk of replies, with the connection's number. */
async function withSpoiler(
  port: number,
  spoil: (chunk: Buffer, others: Socket[], own: Socket) => Buffer | null,
  body: (port: number) => Promise<void>,
): Promise<void> {
  const clients: Socket[] = [];
  const server: Server = createServer((client) => {
    clients.push(client);
    const upstream = connect(port, '127.0.0.1');
    client.on('data', (chunk) => upstream.write(chunk));
    upstream.on('data', (chunk: Buffer) => {
      const spoiled = spoil(
        chunk,
        clients.filter((other) => other !== client),
        client,
      );
      if (spoiled) client.write(spoiled);
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ])
      one.on('error', () => {}).on('close', () => other.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await body((server.address() as { port: number }).port);
  } finally {
    clients.forEach((client) => client.destroy());
    server.close();
  }
}

const FAULTS: readonly (readonly [
  name: string,
  spoil: (chunk: Buffer, others: Socket[], own: Socket) => Buffer | null,
])[] = [
  ['sends a reply to the wrong client', every(100, (chunk, others) => (others[0]?.write(chunk), null))],
  ['changes a byte', every(100, (chunk) => Buffer.from(chunk.map((byte, i) => (i === 0 ? byte ^ 1 : byte))))],
  ['repeats a reply', every(100, (chunk) => Buffer.concat([chunk, chunk]))],
  ['closes a connection', every(100, (_, __, own) => (own.destroy(), null))],
];

function every(nth: number, fault: (chunk: Buffer, others: Socket[], own: Socket) => Buffer | null) {
  let count = 0;
  return (chunk: Buffer, others: Socket[], own: Socket): Buffer | null =>
    ++count % nth === 0 ? fault(chunk, others, own) : chunk;
}

/** The exit code of a drive in a process of its own, which a broken stream may end from inside a client library. */
function driveApart(port: number, replyMs: number): Promise<number | null> {
  const script = fileURLToPath(new URL('drive-once.js', import.meta.url));
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, String(port), '2', String(replyMs)], {
      stdio: 'ignore',
      timeout: 60_000,
    });
    child.once('error', reject);
    child.once('exit', resolve);
  });
}

test('a proxy that does nothing wrong is not accused', async () => {
  await withRedis((server) =>
    withSpoiler(
      server.port,
      (chunk) => chunk,
      async (port) => assert.equal(await driveApart(port, 20_000), 0),
    ),
  );
});

for (const [name, spoil] of FAULTS) {
  test(`a proxy that ${name} is found out`, async () => {
    await withRedis((server) =>
      withSpoiler(server.port, spoil, async (port) => assert.equal(await driveApart(port, 2_000), 1)),
    );
  });
}

test('who talks finds nothing wrong with a server, and notices a message that is lost, or comes twice', async () => {
  await withRedis(async ({ port }) => {
    const isEnough = ({ published, left }: TalkReport): boolean => published > 100 && left > 0;
    const { violations, published, heard, left } = await talk({ port, seed: 1, durationMs: 1500, isEnough });
    assert.deepEqual(violations, []);
    assert.ok(published > 5 && heard >= 4 * published && left > 0, JSON.stringify({ published, heard, left }));
    for (const wrong of ['lost', 'twice'] as const) {
      let seen = 0;
      const spoil = (chunk: Buffer): Buffer => {
        // Chunks of one message and nothing else; a listener that leaves right behind it misses nothing.
        const isOne = /^[*>]3\r\n\$7\r\nmessage\r\n\$6\r\nchat:.\r\n\$\d+\r\nchat:. \d+ ([2-9]|\d\d+)\r\n$/;
        if (!isOne.test(chunk.toString('latin1')) || ++seen % 10 !== 0) return chunk;
        return wrong === 'lost' ? Buffer.alloc(0) : Buffer.concat([chunk, chunk]);
      };
      await withSpoiler(port, spoil, async (spoiled) => {
        const isEnough = ({ published }: TalkReport): boolean => published > 5_000;
        const { violations: found } = await talk({ port: spoiled, seed: 1, durationMs: 0, isEnough });
        assert.ok(
          found.some((each) => /after number|heard/.test(each)),
          `${wrong}: ${found.join('; ')}`,
        );
      });
    }
  });
});
