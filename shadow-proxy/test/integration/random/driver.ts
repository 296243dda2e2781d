/**
 * Drives many connections at once with random commands and looks at every reply: it has the right form, it is for
 * the command that it answers, and a value that only one connection sent is returned to that connection alone.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  openIoredis,
  openNodeRedis,
  openRaw,
  type Answered,
  type Client,
  type Login,
  type RawClient,
} from './clients.js';
import { Generator, type Step } from './generator.js';
import { Random } from './random.js';

/** The second user. Both servers need `user ${APP_USER.acl}` in their configuration. */
export const APP_USER = {
  name: 'app',
  password: 'app-password',
  acl: 'app on >app-password ~* &* +@all -setrange -substr -smove -bitop',
};

export interface DriverOptions {
  readonly host?: string;
  readonly port: number;
  readonly seed: number;
  readonly durationMs: number;
  /** Goes on behind that time until it has seen enough, on a machine of any pace; default: it ends with the time. */
  readonly isEnough?: (report: DriverReport) => boolean;
  readonly connections?: number;
  readonly prefixes?: readonly string[];
  /** Of one connection; default: `prefixes`. */
  readonly prefixesOf?: (number: number) => readonly string[];
  /** Opens one connection; default: a client of the kind that its number says, to `port`. */
  readonly open?: (number: number) => Promise<Client>;
  /** How many databases the connections use. Default: 4. */
  readonly databases?: number;
  readonly keysPerType?: number;
  readonly expiring?: boolean;
  readonly barriers?: boolean;
  /** Prefixes of keys that functions of the library are called with. */
  readonly functions?: readonly string[];
  /** How likely a raw client disconnects at each of its turns, with commands under way. */
  readonly vanishing?: number;
  /** How long a reply may take. */
  readonly replyMs?: number;
  /** Codes of errors that are no fault, besides those of Redis. */
  readonly errorCodes?: readonly string[];
  /**
   * Whether a lost connection is no fault: the client reconnects, and its commands under way may have run or not.
   */
  readonly reconnects?: boolean;
  /** Awaited by each connection before each turn, when nothing of it is under way. */
  readonly between?: () => Promise<void>;
}

export interface CommandCount {
  ok: number;
  errors: number;
  /** The last error. */
  error: string;
}

export interface DriverReport {
  readonly seed: number;
  /** Commands that were answered. */
  operations: number;
  /** Commands under way when their connection was lost. */
  unanswered: number;
  /** Times that a connection was lost. */
  lost: number;
  transactions: number;
  /** Times that a client disconnected with commands under way. */
  vanished: number;
  /** By name; names of containers have their subcommand. */
  readonly commands: Map<string, CommandCount>;
  /** What no server may do. The first fifty. */
  readonly violations: string[];
}

/** Refusals that commands of the generator may earn. */
const ERROR_CODES = [
  'ERR',
  'WRONGTYPE',
  'NOGROUP',
  'BUSYGROUP',
  'NOSCRIPT',
  'EXECABORT',
  'NOPERM',
  'BUSYKEY',
  'INVALIDOBJ',
  'UNBLOCKED',
  'OWN',
];

const KINDS = ['ioredis', 'node-redis', 'raw RESP2', 'raw RESP3'] as const;

/**
 * Drives `connections` until the time is over, and says what it saw. Reports, never throws, what a server does wrong.
 */
export async function drive(options: DriverOptions): Promise<DriverReport> {
  const report: DriverReport = {
    seed: options.seed,
    operations: 0,
    unanswered: 0,
    lost: 0,
    transactions: 0,
    vanished: 0,
    commands: new Map(),
    violations: [],
  };
  const { durationMs, isEnough = () => true } = options;
  const until = Date.now() + durationMs;
  const isOver = (): boolean => Date.now() >= until && (isEnough(report) || report.violations.length > 0);
  await Promise.all(
    Array.from({ length: options.connections ?? 32 }, (_, number) => driveOne(options, number, isOver, report)),
  );
  return report;
}

async function driveOne(
  options: DriverOptions,
  number: number,
  isOver: () => boolean,
  report: DriverReport,
): Promise<void> {
  const { seed, prefixes = [''], keysPerType = 8, expiring = true, barriers = true, functions } = options;
  const generator = new Generator({
    seed,
    connection: number,
    prefixes: options.prefixesOf?.(number) ?? prefixes,
    keysPerType,
    expiring,
    barriers,
    functions,
    now: Date.now,
  });
  // What is sent is one sequence of random numbers, how it is sent another.
  const random = new Random(seed, 1_000_000 + number);
  const name = `connection ${number} (${KINDS[number % 4]})`;
  const violation = (what: string): void => {
    if (report.violations.length < 50) report.violations.push(`${name}: ${what}`);
  };
  do {
    let client: Client | undefined;
    try {
      client = await (options.open === undefined ? open(options, number) : options.open(number));
      generator.db = options.databases === 1 ? 0 : loginOf(options, number).db;
      while (!isOver()) {
        await options.between?.();
        await turn(client, generator, random, options, report, violation);
      }
    } catch (error) {
      if (options.reconnects !== true || !isLoss(error as Error))
        return violation((error as Error).stack ?? String(error));
      report.lost++;
      generator.rebirth();
      await sleep(RETRY_MS);
    } finally {
      client?.close();
    }
  } while (!isOver());
}

const RETRY_MS = 50;
const VANISHING = 0.006;

/** What client libraries call the end of a connection, a server that is not there, and one that is not ready. */
const isLoss = ({ message }: Error): boolean =>
  !message.startsWith('no reply within') &&
  /clos|ECONN|EPIPE|socket|startup nodes|redirections|slots cache|^LOADING|^READONLY/i.test(message);

/** One turn of a connection: perhaps another database, then some steps at once, then perhaps a rest. */
async function turn(
  client: Client,
  generator: Generator,
  random: Random,
  options: DriverOptions,
  report: DriverReport,
  violation: (what: string) => void,
): Promise<void> {
  if (random.chance(0.02) && options.databases !== 1) {
    const db = random.between(0, 3);
    await inTime(options, client.select(db), () => `SELECT ${db}`);
    generator.db = db;
  }
  const depth = random.chance(0.3) ? 1 : random.between(1, 40);
  const steps = random.times(depth, () => generator.next());
  if ('vanish' in client && random.chance(options.vanishing ?? VANISHING)) {
    await inTime(
      options,
      (client as RawClient).vanish([...steps, { calls: generator.ending(), end: null }], random),
      () => 'a new connection',
    );
    generator.rebirth();
    report.vanished++;
    return;
  }
  const answers = await inTime(options, client.run(steps, random), () => describe(steps)).catch((error: Error) => {
    report.unanswered += steps.reduce((sum, { calls }) => sum + calls.length, 0);
    throw error;
  });
  for (const answer of answers) {
    // It was not run, and what follows in the turn may rest on it.
    if (isAllowed(answer, options.errorCodes ?? [])) {
      generator.rebirth();
      break;
    }
    look(answer, report, violation);
  }
  report.transactions += steps.filter(({ end }) => end !== null).length;
  if (random.chance(0.05)) await sleep(random.between(1, 60));
}

const isAllowed = ({ reply }: Answered, codes: readonly string[]): boolean =>
  reply instanceof Error && codes.includes(reply.message.split(' ', 1)[0]);

function look({ call, reply, wrong }: Answered, report: DriverReport, violation: (what: string) => void): void {
  report.operations++;
  const command = nameOf(call.args);
  const count = report.commands.get(command) ?? { ok: 0, errors: 0, error: '' };
  report.commands.set(command, count);
  const failed = reply instanceof Error;
  if (failed) {
    count.errors++;
    count.error = reply.message;
    const code = reply.message.split(' ', 1)[0];
    if (!ERROR_CODES.includes(code)) violation(`${show(call.args)} was refused with ${reply.message}`);
  } else {
    count.ok++;
    call.learn?.(reply);
  }
  const complaint = wrong ?? call.check?.(reply) ?? null;
  if (complaint !== null) violation(`${show(call.args)} got ${failed ? reply.message : show([reply])}: ${complaint}`);
}

const CONTAINERS = ['XGROUP', 'XINFO', 'OBJECT', 'SCRIPT'];
const nameOf = (args: readonly (string | Buffer)[]): string =>
  CONTAINERS.includes(String(args[0])) ? `${args[0]} ${args[1]}` : String(args[0]);

function loginOf({ host = '127.0.0.1', port }: DriverOptions, number: number): Login {
  const round = Math.floor(number / 4);
  const protocol = number % 4 === 2 ? 2 : number % 4 === 3 ? 3 : round % 2 === 0 ? 2 : 3;
  return { host, port, protocol, user: round % 4 === 1 ? APP_USER : null, db: round % 3 === 0 ? 0 : round % 4 };
}

function open(options: DriverOptions, number: number): Promise<Client> {
  const login = loginOf(options, number);
  const opened = number % 4 === 0 ? openIoredis(login) : number % 4 === 1 ? openNodeRedis(login) : openRaw(login);
  return inTime<Client>(options, opened, () => 'the login');
}

async function inTime<T>({ replyMs = 30_000 }: DriverOptions, promise: Promise<T>, what: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no reply within ${replyMs} ms to ${what()}`)), replyMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

const describe = (steps: readonly Step[]): string =>
  steps.map(({ calls, end }) => calls.map(({ args }) => show(args)).join('; ') + (end ? ` ${end}` : '')).join(' | ');

/** For a report: each value as text, cut short. */
function show(values: readonly unknown[]): string {
  const one = (value: unknown): string => {
    const text = Buffer.isBuffer(value) ? value.toString('latin1') : Array.isArray(value) ? show(value) : String(value);
    return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}… (${text.length})` : text).slice(1, -1);
  };
  return values.map(one).join(' ');
}
