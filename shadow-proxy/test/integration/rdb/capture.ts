/**
 * Prints, as a TypeScript module, payloads that a server wrote and what its commands said about each:
 * `node …/test/integration/rdb/capture.js 6379 > shadow-proxy/test/integration/rdb/fixtures/redis-7.4.ts`. It uses the
 * database of the server named by its port on this machine, and deletes key `key`.
 */
import { Redis } from 'ioredis';
import { dump, observe, type Plain } from './observe.js';
import { cook, type Command } from './recipes.js';

export interface Fixture {
  readonly name: string;
  /** Base64. */
  readonly payload: string;
  /**
   * By commands of the server that wrote it; null where that server's commands tell too little (streams before 6.0).
   */
  readonly observed: Plain;
  /** Fields that expire: name and Unix milliseconds. */
  readonly expiry?: readonly (readonly [string, number])[];
}

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const WIDTHS = [
  ...[0, 12, 13, -1, 127, -128, 128, 4095, -4096, 32767, -32768, 8388607, -8388608, 2147483647, -2147483648],
  ...['9223372036854775807', '-9223372036854775808'],
];
const LONG = Buffer.from(range(300).map((i) => (i * i) & 255));
const IN_2100 = 4102444800000;

const RECIPES: Record<string, Command[]> = {
  'string, 8 bits': [['SET', 'key', '-12']],
  'string, 16 bits': [['SET', 'key', '-1234']],
  'string, 32 bits': [['SET', 'key', '1234567890']],
  'string, 64 bits': [['SET', 'key', '-1234567890123']],
  'string, compressed': [['SET', 'key', Buffer.alloc(1000, 'compress me ')]],
  'string, binary': [['SET', 'key', LONG]],
  'list, small': [['RPUSH', 'key', ...WIDTHS, '', 'text', LONG, Buffer.alloc(100, 'x')]],
  'list, numbers': [['RPUSH', 'key', ...WIDTHS]],
  'list, big': [['RPUSH', 'key', ...range(200).map((i) => (i % 3 ? i : `item ${i}`)), Buffer.alloc(9000, 'y')]],
  'set, 16 bits': [['SADD', 'key', 3, 1, 2, -5]],
  'set, 32 bits': [['SADD', 'key', 3, 70000, -70000]],
  'set, 64 bits': [['SADD', 'key', 3, '9223372036854775807', '-9223372036854775808']],
  'set, small': [['SADD', 'key', 'a', 'b', 5, '']],
  'set, big': [['SADD', 'key', ...range(150).map((i) => `member ${i}`)]],
  'hash, small': [['HMSET', 'key', 'name', 'someone', 'count', 12345, '', '', 'long', Buffer.alloc(60, 'z')]],
  'hash, big': [['HMSET', 'key', ...range(150).flatMap((i) => [`field ${i}`, i])]],
  'hash, long value': [['HMSET', 'key', 'a', LONG, 'b', 1]],
  'zset, small': [
    [
      'ZADD',
      'key',
      1,
      'one',
      2.5,
      'two',
      '-inf',
      'low',
      'inf',
      'high',
      '-0.1',
      'minus',
      1e300,
      'huge',
      '9007199254740993',
      'exact',
    ],
  ],
  'zset, big': [
    ['ZADD', 'key', ...range(140).flatMap((i) => [i / 7 - 20, `member ${i}`]), '-inf', 'low', 'inf', 'high'],
  ],
  stream: [
    ['XADD', 'key', '5-0', 'field', 1],
    ...range(120).map((i): Command => ['XADD', 'key', `${10 + i * 3}-${i % 4}`, 'field', i, 'other', `value ${i}`]),
    ['XADD', 'key', '9999999999999-18446744073709551615', 'different', 'fields', 'field', LONG],
    ['XDEL', 'key', '10-0', '13-1', '370-0'],
    ['XGROUP', 'CREATE', 'key', 'readers', '0'],
    ['XGROUP', 'CREATE', 'key', 'nobody', '$'],
    ['XREADGROUP', 'GROUP', 'readers', 'alice', 'COUNT', 7, 'STREAMS', 'key', '>'],
    ['XREADGROUP', 'GROUP', 'readers', 'bob', 'COUNT', 5, 'STREAMS', 'key', '>'],
    ['XACK', 'key', 'readers', '16-2'],
    ['XDEL', 'key', '19-3'],
    ['XCLAIM', 'key', 'readers', 'carol', 0, '22-0', 'TIME', 1500000000000, 'RETRYCOUNT', 9],
  ],
  'stream of idempotent producers': [
    ['XADD', 'key', '5-0', 'field', 1, 'other', 'value'],
    ['XADD', 'key', '6-0', 'field', 2],
    ['XIDMPRECORD', 'key', 'producer', 'message 1', '5-0'],
    ['XIDMPRECORD', 'key', 'producer', 'message 2', '6-0'],
    ['XGROUP', 'CREATE', 'key', 'readers', '0'],
    ['XREADGROUP', 'GROUP', 'readers', 'alice', 'COUNT', 1, 'STREAMS', 'key', '>'],
  ],
  'hash with expiring fields, small': [
    ['HMSET', 'key', 'a', 1, 'b', 2, 'c', 3],
    ['HPEXPIREAT', 'key', IN_2100, 'FIELDS', 1, 'b'],
    ['HPEXPIREAT', 'key', IN_2100 + 5, 'FIELDS', 1, 'c'],
  ],
  'hash with expiring fields, big': [
    ['HMSET', 'key', ...range(150).flatMap((i) => [`field ${i}`, i])],
    ['HPEXPIREAT', 'key', IN_2100, 'FIELDS', 2, 'field 7', 'field 8'],
    ['HPEXPIREAT', 'key', IN_2100 + 99, 'FIELDS', 1, 'field 9'],
  ],
};

async function capture(client: Redis, name: string, commands: Command[]): Promise<Fixture | null> {
  await client.del('key');
  try {
    await cook(client, { type: '', commands });
  } catch (error) {
    if (/unknown command/.test(String(error))) return null;
    throw error;
  }
  const observed = await observe(client, 'key').catch((error: unknown) => {
    if (/unknown subcommand/i.test(String(error))) return null;
    throw error;
  });
  const payload = (await dump(client, 'key')).toString('base64');
  if (!name.includes('expiring')) return { name, payload, observed };
  const fields = (await client.hkeys('key')).sort();
  const times = (await client.call('HPEXPIRETIME', 'key', 'FIELDS', fields.length, ...fields)) as number[];
  const expiry = fields.map((field, i): [string, number] => [field, times[i]]).filter(([, time]) => time > 0);
  return { name, payload, observed, expiry };
}

async function main(port: number): Promise<void> {
  const client = new Redis({ port, enableReadyCheck: false, protocol: 2 });
  const program = /(?:redis|keydb)_version:(\S+)/.exec(await client.info('server'))![1];
  const fixtures: Fixture[] = [];
  for (const [name, commands] of Object.entries(RECIPES)) {
    const fixture = await capture(client, name, commands);
    if (fixture) fixtures.push(fixture);
  }
  await client.del('key');
  client.disconnect();
  const lines = fixtures.map((fixture) => `  ${JSON.stringify(fixture)},\n`);
  process.stdout.write(
    `/** Written by capture.ts on version ${program}. */\nimport type { Fixture } from '../capture.js';\n\n`,
  );
  process.stdout.write(`export const fixtures: readonly Fixture[] = [\n${lines.join('')}];\n`);
}

if (process.argv[1]?.endsWith('capture.js')) await main(Number(process.argv[2]));
