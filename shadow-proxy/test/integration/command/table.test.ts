/**
 * The table of commands, against the two servers that it was made from.
 *
 * Needs real servers: COMMAND of both servers, from which the table was generated.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { generateTable } from '../../../src/command/generate.js';
import { COMMANDS } from '../../../src/command/table.generated.js';
import { CommandTable, supportedCommands } from '../../../src/command/table.js';
import { startRedis, type LocalServer } from '../../../src/local/servers.js';
import { decodeReply, type Reply } from '../../../src/resp/decode.js';
import { encodeCommand } from '../../../src/resp/encode.js';
import { FrameScanner } from '../../../src/resp/frame-scanner.js';
import { commandsOfSource, EVERY_COMMAND, redisSince, withServers } from '../../support/servers.js';
import { find } from '../../support/command-frames.js';
import { needs } from '../../support/needs.js';

const table = new CommandTable();
let redis: LocalServer;
let client: Redis;
before(async () => {
  redis = await startRedis();
  client = new Redis(redis.url);
});
after(async () => {
  client.disconnect();
  await redis.stop();
});

/** The server's reply to `COMMAND`, decoded. */
async function commandReply(server: LocalServer, protocol: 2 | 3): Promise<Reply> {
  const socket = connect(server.port, server.host);
  try {
    socket.write(encodeCommand(protocol === 3 ? ['HELLO', '3'] : ['PING']));
    socket.write(encodeCommand(['COMMAND']));
    let bytes = Buffer.alloc(0);
    for await (const chunk of socket) {
      bytes = Buffer.concat([bytes, chunk as Buffer]);
      const first = new FrameScanner().scan(bytes, 0, bytes.length);
      if (first !== -1 && new FrameScanner().scan(bytes, first, bytes.length) !== -1)
        return decodeReply(bytes, first).reply;
    }
    throw new Error('the server closed the connection');
  } finally {
    socket.destroy();
  }
}

test('the generated file is what the real servers say today', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  if (!(await needs(t, 'redis=7.0'))) return;
  await withServers(
    async ({ source, target }) => {
      const text = await generateTable(source.url, target.url);
      const rows = text.split('\n').filter((line) => line.startsWith('  ['));
      const said = rows.map((line) => JSON.parse(line.replaceAll("'", '"').replace(/,$/, '')) as unknown);
      assert.deepEqual(said, COMMANDS, 'run generate.js again, and look at what changed');
      assert.equal(await generateTable(source.url, target.url), text, 'the same servers give the same file');
    },
    { target: EVERY_COMMAND },
  );
});

test('a command is found by its bytes in any case, exactly where a plain lookup finds it', () => {
  const byName = new Map(table.all.map((spec) => [spec.name, spec]));
  const plainLookup = (args: readonly Buffer[]): unknown => {
    const [word, second] = args.map((arg) =>
      arg.toString('latin1').replace(/[A-Z]/g, (letter) => letter.toLowerCase()),
    );
    if (word.includes('|')) return undefined;
    const spec = byName.get(word);
    const isContainer = [...byName.keys()].some((name) => name.startsWith(`${word}|`));
    return spec !== undefined && isContainer && second !== undefined ? byName.get(`${word}|${second}`) : spec;
  };
  const words = [...new Set(table.all.flatMap(({ name }) => name.split('|')))];
  /** Some bit of the case flipped in each byte: for letters another case, for any other byte another byte. */
  const flipped = fc
    .tuple(fc.constantFrom(...words), fc.infiniteStream(fc.boolean()), fc.boolean())
    .map(([word, flips, lettersOnly]) =>
      Buffer.from(word, 'latin1').map((byte) =>
        flips.next().value && (!lettersOnly || /[a-z]/.test(String.fromCharCode(byte))) ? byte ^ 32 : byte,
      ),
    );
  const argument = fc
    .oneof({ weight: 6, arbitrary: flipped }, { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }) })
    .map((bytes) => Buffer.from(bytes));
  const named = fc
    .constantFrom(...table.all)
    .chain(({ name }) =>
      fc
        .infiniteStream(fc.boolean())
        .map((upper) =>
          name
            .split('|')
            .map((word) =>
              Buffer.from([...word].map((c) => (upper.next().value ? c.toUpperCase() : c)).join(''), 'latin1'),
            ),
        ),
    );
  const command = fc.oneof(fc.array(argument, { minLength: 1, maxLength: 3 }), named);
  fc.assert(
    fc.property(command, (args) => {
      assert.equal(find(table, args), plainLookup(args));
    }),
    { numRuns: 20_000 },
  );
  for (const spec of table.all) assert.equal(find(table, spec.name.toUpperCase().split('|')), spec);
});

test('a word with one byte more or less is another word', () => {
  for (const { name } of table.all) {
    if (name.includes('|')) continue;
    assert.equal(find(table, [name.slice(0, -1)])?.name ?? name.slice(0, -1), name.slice(0, -1));
    for (let byte = 0; byte < 256; byte++) {
      const longer = `${name}${String.fromCharCode(byte)}`;
      assert.equal(find(table, [Buffer.from(longer, 'latin1')])?.name ?? longer.toLowerCase(), longer.toLowerCase());
    }
  }
});

test('what is no command for Redis is none for the table', async () => {
  const supported = supportedCommands(await commandReply(redis, 2));
  const names = table.all.flatMap(({ name }) => (name.includes('|') ? [] : [name]));
  const nearly = fc
    .tuple(fc.constantFrom(...names), fc.nat(), fc.integer({ min: 0, max: 255 }))
    .map(([name, at, byte]) => {
      const bytes = Buffer.from(name);
      bytes[at % bytes.length] = byte;
      return bytes;
    });
  await fc.assert(
    fc.asyncProperty(nearly, async (word) => {
      // Redis compares as far as a NUL only, and takes `|` for a container's.
      fc.pre(!word.includes(0) && !word.includes('|'));
      const [entry] = (await client.call('COMMAND', 'INFO', word)) as readonly unknown[];
      assert.equal(supported.has(find(table, [word])?.name ?? ''), entry !== null);
    }),
    { numRuns: 1000 },
  );
});

test('a container is found with a known subcommand, or alone', () => {
  assert.equal(find(table, ['xgroup', 'CREATE', 'k', 'g', '$'])?.name, 'xgroup|create');
  assert.equal(find(table, ['XGROUP'])?.name, 'xgroup');
  assert.equal(find(table, ['XGROUP', 'CREAT', 'k', 'g', '$']), undefined);
  assert.equal(find(table, ['XGROUP|CREATE', 'k', 'g', '$']), undefined);
  assert.equal(find(table, ['CLIENT', 'SETINFO', 'LIB-NAME', 'x'])?.inSource, false);
});

test('numbers of commands are dense, and each knows its own', () => {
  table.all.forEach((spec, id) => {
    assert.equal(spec.id, id);
    assert.equal(table.byName(spec.name), spec);
  });
});

test('what a server supports is read from its own COMMAND, in both protocols', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  for (const protocol of [2, 3] as const) {
    const supported = supportedCommands(await commandReply(redis, protocol));
    const known = await commandsOfSource();
    if (await redisSince(7, 0)) assert.deepEqual([...supported].sort(), [...known].sort());
    else for (const name of supported) assert.ok(known.has(name), name);
  }
  await withServers(
    async ({ target }) => {
      const supported = supportedCommands(await commandReply(target, 2));
      assert.deepEqual(
        [...supported].sort(),
        table.all.filter((spec) => spec.inTarget).map((spec) => spec.name),
      );
      for (const name of ['lmpop', 'object|help', 'xgroup|create', 'config|get'])
        assert.equal(supported.has(name), name !== 'lmpop');
    },
    { target: EVERY_COMMAND },
  );
});

test('KeyDB answers to every subcommand that the table says it has, and to no other', async (t) => {
  if (!(await needs(t, 'target<7.0'))) return;
  await withServers(async ({ target }) => {
    const keydb = new Redis(target.url);
    try {
      // Without cluster mode, KeyDB says the same of every subcommand of CLUSTER.
      for (const spec of table.all.filter(
        ({ name }) => name.includes('|') && !name.startsWith('cluster|') && table.byName(name.split('|')[0])!.inTarget,
      )) {
        const [container, subcommand] = spec.name.split('|');
        // One that takes no arguments would be done; of the others a known one objects to these.
        if (Math.abs(spec.arity) === 2) continue;
        const answers = await Promise.all(
          [2, Math.abs(spec.arity)].map(async (argc) => {
            const args = new Array<string>(argc - 2).fill('nothing');
            return keydb.call(container, [subcommand, ...args]).then(String, (error: Error) => error.message);
          }),
        );
        const unknown = answers.every((answer) => /unknown subcommand/i.test(answer));
        assert.equal(!unknown, spec.inTarget, `${spec.name}: ${answers.join(' / ')}`);
      }
    } finally {
      keydb.disconnect();
    }
  });
});
