/** One face for the three kinds of clients: send some steps at once, get the reply to every call. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Command, Redis } from 'ioredis';
import { createClient, RESP_TYPES, WatchError } from 'redis';
import type { Call, Kind } from './command.js';
import type { Argument, Plain } from './reply.js';
import type { Step } from './generator.js';
import { encode, RawConnection, type RawReply } from './raw.js';
import type { Random } from './random.js';

export interface Login {
  readonly host: string;
  readonly port: number;
  readonly protocol: 2 | 3;
  readonly user: { readonly name: string; readonly password: string } | null;
  readonly db: number;
}

/** A call with its reply, and what is wrong with the reply's form, if anything. */
export interface Answered {
  readonly call: Call;
  readonly reply: Plain;
  readonly wrong: string | null;
}

export interface Client {
  /** @throws when the connection fails */
  run(steps: readonly Step[], random: Random): Promise<Answered[]>;
  select(db: number): Promise<void>;
  close(): void;
}

const QUEUED: Call = { args: ['(queued)'], kind: 'status' };
const MULTI: Call = { args: ['MULTI'], kind: 'status' };
/** Nil where a watched key has changed. */
const EXEC: Call = { args: ['EXEC'], kind: 'array?' };
const DISCARD: Call = { args: ['DISCARD'], kind: 'status' };

const answered = (call: Call, reply: Plain): Answered => ({
  call,
  reply,
  wrong: reply instanceof Error || fits(call.kind, reply) ? null : 'wrong type',
});

/** What a client library gives for each kind. */
function fits(kind: Kind, reply: Plain): boolean {
  if (kind === 'any') return true;
  if (reply === null) return kind.endsWith('?');
  const aggregate = typeof reply === 'object' && !Buffer.isBuffer(reply);
  switch (kind.replace('?', '')) {
    case 'int':
      return !aggregate && /^-?\d+$/.test(String(reply));
    case 'array':
    case 'map':
    case 'set':
      return aggregate;
    default:
      return !aggregate;
  }
}

/** The results of an EXEC, matched with their calls. */
function transaction(calls: readonly Call[], results: Plain): Answered[] {
  if (!Array.isArray(results)) return [answered(EXEC, results)];
  if (results.length !== calls.length)
    return [
      {
        call: EXEC,
        reply: results,
        wrong: `${results.length} results for ${calls.map(({ args }) => String(args[0])).join(', ')}`,
      },
    ];
  return calls.map((call, i) => answered(call, results[i] as Plain));
}

/** Maps, sets and objects as flat arrays. */
function plain(reply: unknown): Plain {
  if (Array.isArray(reply)) return reply.map(plain);
  if (reply instanceof Map || reply instanceof Set) return [...reply].flat().map(plain);
  if (reply !== null && typeof reply === 'object' && !Buffer.isBuffer(reply) && !(reply instanceof Error))
    return Object.entries(reply).flat().map(plain);
  return (reply ?? null) as Plain;
}

const caught = (error: unknown): Plain => {
  if (error instanceof Error && /^[A-Z]+( |$)/.test(error.message)) return error;
  throw error;
};

/** MULTI … EXEC through ioredis, for one server or a cluster. */
async function ioredisTransaction(client: Redis | Cluster, calls: readonly Call[]): Promise<Answered[]> {
  const multi = client.multi();
  for (const { args } of calls) multi.callBuffer(String(args[0]), ...args.slice(1));
  try {
    const results = await multi.exec();
    return transaction(
      calls,
      results === null ? null : results.map(([error, value]) => (error ? caught(error) : plain(value))),
    );
  } catch (error) {
    return [answered(EXEC, caught(error))];
  }
}

export async function openIoredis(login: Login): Promise<Client> {
  const { host, port, protocol, user, db } = login;
  const client = new Redis({
    host,
    port,
    db,
    protocol,
    username: user?.name,
    password: user?.password,
    retryStrategy: () => null,
    lazyConnect: true,
  });
  client.on('error', () => {});
  await client.connect();
  const send = (args: readonly Argument[]): Promise<Plain> =>
    client.callBuffer(String(args[0]), ...args.slice(1)).then(plain, caught);

  async function pipelined(calls: readonly Call[]): Promise<Answered[]> {
    const pipeline = client.pipeline();
    for (const { args } of calls) pipeline.callBuffer(String(args[0]), ...args.slice(1));
    const results = (await pipeline.exec()) ?? [];
    return calls.map((call, i) => answered(call, results[i][0] ? caught(results[i][0]) : plain(results[i][1])));
  }

  const inTransaction = (calls: readonly Call[]): Promise<Answered[]> => ioredisTransaction(client, calls);

  return {
    run: (steps, random) => {
      const plainOnly = steps.every(({ end }) => end === null);
      if (plainOnly && random.chance(0.5)) return pipelined(steps.flatMap(({ calls }) => calls));
      return all(steps, send, inTransaction);
    },
    select: async (to) => void (await client.select(to)),
    close: () => client.disconnect(),
  };
}

/** Whether ioredis finds the keys of a command, and thereby its node: of some it takes other arguments for keys. */
function hasNode([name, ...args]: readonly Argument[]): boolean {
  try {
    const keys = new Command(String(name), args).getKeys();
    return keys.length > 0 && keys.every((key: unknown) => String(key).startsWith('{'));
  } catch {
    return false;
  }
}

/** A client of a cluster. Its keys must be of one slot, and what has no key goes to any node. */
export function openCluster(login: Login): Promise<Client> {
  const client = new Cluster([{ host: login.host, port: login.port }], {});
  client.on('error', () => {});
  const send = (args: readonly Argument[]): Promise<Plain> =>
    client.callBuffer(String(args[0]), ...args.slice(1)).then(plain, caught);

  const inTransaction = (calls: readonly Call[]): Promise<Answered[]> => ioredisTransaction(client, calls);

  return Promise.resolve({
    // A discarded transaction has no key that shows which node it is for.
    run: (steps) =>
      all(
        steps
          .filter(({ end }) => end !== 'DISCARD')
          .map(({ calls, end }) => ({ calls: calls.filter(({ args }) => hasNode(args)), end })),
        send,
        inTransaction,
      ),
    select: () => Promise.resolve(),
    close: () => client.disconnect(),
  });
}

export async function openNodeRedis(login: Login): Promise<Client> {
  const { host, port, protocol, user, db } = login;
  const client = createClient({
    socket: { host, port, reconnectStrategy: false },
    RESP: protocol,
    database: db,
    username: user?.name,
    password: user?.password,
    commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
  });
  client.on('error', () => {});
  await client.connect();
  const send = (args: readonly Argument[]): Promise<Plain> => client.sendCommand([...args]).then(plain, caught);

  async function inTransaction(calls: readonly Call[]): Promise<Answered[]> {
    const multi = client.multi();
    for (const { args } of calls) multi.addCommand([...args]);
    try {
      return transaction(calls, plain(await multi.exec()));
    } catch (error) {
      if (error instanceof WatchError) return [answered(EXEC, null)];
      const replies = (error as { replies?: unknown[] }).replies;
      return replies ? transaction(calls, plain(replies)) : [answered(EXEC, caught(error))];
    }
  }

  return {
    run: (steps) => all(steps, send, inTransaction),
    select: async (to) => void (await client.select(to)),
    close: () => client.destroy(),
  };
}

/** Sends every step in one turn of the event loop, in order. */
async function all(
  steps: readonly Step[],
  send: (args: readonly Argument[]) => Promise<Plain>,
  inTransaction: (calls: readonly Call[]) => Promise<Answered[]>,
): Promise<Answered[]> {
  const one = async (call: Call): Promise<Answered[]> => [answered(call, await send(call.args))];
  const parts = steps.flatMap(({ calls, end }): Promise<Answered[]>[] => {
    if (end === null) return calls.map(one);
    if (end === 'EXEC') return calls.length === 0 ? [] : [inTransaction(calls)];
    const queued = async ({ args }: Call): Promise<Answered[]> => [answered(QUEUED, await send(args))];
    return [one(MULTI), ...calls.map(queued), one(DISCARD)];
  });
  return (await Promise.all(parts)).flat();
}

/** Types that a RESP2 and a RESP3 reply of each kind may have. */
const TYPES: Record<string, readonly [resp2: string, resp3: string]> = {
  status: ['+', '+'],
  int: [':', ':'],
  bulk: ['$', '$'],
  double: ['$', ','],
  array: ['*', '*'],
  map: ['*', '%'],
  set: ['*', '~'],
};

export interface RawClient extends Client {
  /** Between steps: another database, user or protocol, and back. Changes what later replies look like. */
  readonly login: Login;
  /**
   * Sends the steps, or a part of their bytes, and disconnects, at once or soon, without reading the replies; then
   * connects again.
   */
  vanish(steps: readonly Step[], random: Random): Promise<void>;
}

export async function openRaw(first: Login): Promise<RawClient> {
  let login = first;
  let connection = await RawConnection.open(login.host, login.port);
  const logIn = async (): Promise<void> => {
    const { protocol, user, db } = login;
    const auth = user ? ['AUTH', user.name, user.password] : [];
    const commands = protocol === 3 ? [['HELLO', '3', ...auth]] : auth.length > 0 ? [auth] : [];
    const replies = await connection.exchange(
      [Buffer.concat([...commands, ['SELECT', String(db)]].map(encode))],
      commands.length + 1,
    );
    const refused = replies.find(({ type }) => type === '-');
    if (refused) throw refused.value as Error;
  };
  await logIn();

  async function run(steps: readonly Step[], random: Random): Promise<Answered[]> {
    const calls = steps.flatMap(flatten);
    if (calls.length === 0) return [];
    const bytes = Buffer.concat(calls.map(({ args }) => encode(args)));
    const replies = await connection.exchange(random.chance(0.2) ? split(bytes, random) : [bytes], calls.length);
    return matched(steps, replies, login.protocol);
  }

  /** HELLO to the other protocol or to the same, RESET and a new login, or the ordinary. */
  async function change(random: Random): Promise<void> {
    const dice = random.next();
    if (dice < 0.2) login = { ...login, protocol: login.protocol === 2 ? 3 : 2 };
    const [hello, reset] = [encode(['HELLO', String(login.protocol)]), encode(['RESET'])];
    if (dice < 0.3) await expectTypes([hello], login.protocol === 3 ? '%' : '*');
    else if (dice < 0.4) {
      await expectTypes([reset], '+');
      await logIn();
    } else
      await expectTypes(
        [encode(['CLIENT', 'SETNAME', 'raw']), encode(['CLIENT', 'GETNAME']), encode(['CLIENT', 'ID'])],
        '+$:',
      );
  }

  async function expectTypes(commands: readonly Buffer[], types: string): Promise<void> {
    const replies = await connection.exchange([Buffer.concat(commands)], commands.length);
    const got = replies.map(({ type }) => type).join('');
    if (got !== types) throw new Error(`expected replies of the types ${types}, got ${got}`);
  }

  return {
    get login() {
      return login;
    },
    run: async (steps, random) => {
      if (random.chance(0.02)) await change(random);
      return run(steps, random);
    },
    select: async (db) => {
      await expectTypes([encode(['SELECT', String(db)])], '+');
      login = { ...login, db };
    },
    vanish: async (steps, random) => {
      const bytes = Buffer.concat(steps.flatMap(flatten).map(({ args }) => encode(args)));
      connection.abandon();
      connection.socket.write(random.chance(0.3) ? bytes.subarray(0, random.between(0, bytes.length)) : bytes);
      await (random.chance(0.5) ? new Promise(setImmediate) : sleep(random.between(1, 40)));
      connection.destroy();
      connection = await RawConnection.open(login.host, login.port);
      await logIn();
    },
    close: () => connection.destroy(),
  };
}

const flatten = ({ calls, end }: Step): readonly Call[] =>
  end === null ? calls : [MULTI, ...calls, end === 'EXEC' ? EXEC : DISCARD];

function matched(steps: readonly Step[], replies: readonly RawReply[], protocol: 2 | 3): Answered[] {
  const left = [...replies];
  const check = (call: Call): Answered => {
    const { type, value } = left.shift()!;
    return {
      call,
      reply: value,
      wrong: right(call.kind, type, value, protocol)
        ? null
        : `type ${type} for a reply of kind ${call.kind} in RESP${protocol}`,
    };
  };
  return steps.flatMap(({ calls, end }): Answered[] => {
    if (end === null) return calls.map(check);
    const queued = [MULTI, ...calls.map(() => QUEUED)].map(check);
    if (end === 'DISCARD') return [...queued, check(DISCARD)];
    const exec = check(EXEC);
    return [...queued, ...(exec.wrong === null && Array.isArray(exec.reply) ? transaction(calls, exec.reply) : [exec])];
  });
}

function right(kind: Kind, type: string, value: Plain, protocol: 2 | 3): boolean {
  if (type === '-' || kind === 'any') return true;
  if (protocol === 3 && type === '_') return kind.endsWith('?');
  if (value === null && !kind.endsWith('?')) return false;
  const expected = TYPES[kind.replace('?', '')][protocol - 2];
  return type === expected || (value === null && protocol === 2 && (type === '$' || type === '*'));
}

function split(bytes: Buffer, random: Random): Buffer[] {
  const cuts = random.times(random.between(1, 5), () => random.between(0, bytes.length)).sort((a, b) => a - b);
  return [...cuts, bytes.length].map((cut, i) => bytes.subarray(cuts[i - 1] ?? 0, cut));
}
