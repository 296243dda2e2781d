/**
 * Asks a server questions that change nothing: for the operator's tools, on a connection of their own.
 *
 * Every question has a deadline, every answer a limit. The connection is closed when `asking` ends, however it ends.
 */
import { unixMs } from '../io/clock.js';
import { parseInfo } from './server.js';
import { Connection } from './connection.js';
import { Dialer } from './dialer.js';
import { inTime } from '../io/in-time.js';
import { clearTimer, every } from '../io/timers.js';
import { Turn } from '../io/turn.js';
import type { Address, Endpoint } from '../plan/endpoint.js';
import { isError, text, type Reply, errorText } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';

const CONNECT_MS = 5_000;
/** The time limit for one answer, or for several that are asked for together, in ms. */
const ANSWER_MS = 10_000;
/** The largest answer; no question that is asked here has a larger one. */
const ANSWER_BYTES = 256 << 20;
const SIZE_CHECK_MS = 100;

/** The server could not be asked. The message says which server, and why. */
export class AskError extends Error {
  override readonly name = 'AskError';
}

/**
 * Connects, logs in, asks, and closes the connection.
 * @param signal closes it at once
 * @throws {AskError} if the server cannot be reached or refuses, does not answer in time, or answers as no Redis does
 */
export async function asking<T>(
  endpoint: Endpoint,
  ask: (asker: Asker) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  let connection: Connection | undefined;
  try {
    const dialer = new Dialer(endpoint, CONNECT_MS);
    const address = await dialer.resolve();
    const socket = await dialer.connect(address);
    connection = new Connection(socket, new Turn());
    signal?.addEventListener('abort', () => connection?.destroy());
    const asker = new Asker(connection, endpoint, address, () => socket.bytesRead);
    await asker.logIn(dialer);
    return await ask(asker);
  } catch (problem) {
    if (problem instanceof AskError) throw problem;
    // The error of code that reads an answer of an unexpected shape.
    const unread = problem instanceof TypeError || problem instanceof RangeError;
    const why = unread ? 'an answer is not what a Redis answers: check the address' : (problem as Error).message;
    throw new AskError(`${endpoint.label}: ${why}`, { cause: problem });
  } finally {
    connection?.destroy();
  }
}

/** Asks all of them at once. The first failure aborts the others. */
export async function askingAll<I, T>(
  all: readonly I[],
  ask: (each: I, signal: AbortSignal, i: number) => Promise<T>,
): Promise<T[]> {
  const stop = new AbortController();
  try {
    return await Promise.all(all.map((each, i) => ask(each, stop.signal, i)));
  } catch (problem) {
    stop.abort();
    throw problem;
  }
}

/** One server, and the questions to it. */
export class Asker {
  readonly refusals: string[] = [];

  /** Use `asking`. */
  constructor(
    private readonly connection: Connection,
    private readonly endpoint: Endpoint,
    /** The address at which the server was found. */
    readonly address: Address,
    private readonly bytesRead: () => number,
  ) {}

  async logIn({ credentials }: Dialer): Promise<void> {
    if (credentials === undefined) return;
    const { username, password } = credentials;
    await this.must('AUTH', ...(username === undefined ? [] : [username]), password);
  }

  /** @throws {AskError} if the server refuses */
  async must(...command: Argument[]): Promise<Reply> {
    const [reply] = await this.all([command]);
    if (!isError(reply)) return reply;
    const refusal = errorText(reply);
    const hint = refusal.startsWith('NOAUTH') ? ' Add the password to the URL.' : '';
    throw new AskError(`${this.endpoint.label} refuses ${String(command[0])}: ${refusal}${hint}`);
  }

  /** Null if the server refuses. */
  async may(...command: Argument[]): Promise<Reply | null> {
    const [reply] = await this.all([command]);
    if (!isError(reply)) return reply;
    this.refusals.push(`${command.slice(0, 2).join(' ')}: ${errorText(reply)}`);
    return null;
  }

  async info(section?: string): Promise<Map<string, string>> {
    return parseInfo(text(await this.must('INFO', ...(section === undefined ? [] : [section]))));
  }

  /** The replies to several commands, including errors. */
  async all(commands: readonly (readonly Argument[])[]): Promise<Reply[]> {
    const before = this.bytesRead();
    const { label } = this.endpoint;
    const name = String(commands.at(0)?.[0]);
    const sizeCheck = every(SIZE_CHECK_MS, () => {
      if (this.bytesRead() - before > ANSWER_BYTES)
        this.connection.destroy(new Error(`the answer to ${name} is longer than ${ANSWER_BYTES >> 20} MiB`));
    });
    const late = (): Error => new AskError(`${label} did not answer ${name} within ${ANSWER_MS / 1000} s`);
    try {
      return await inTime(this.connection.askAll(commands), ANSWER_MS, late);
    } finally {
      clearTimer(sizeCheck);
    }
  }
}

/** The server's clock minus this machine's, in ms, and the possible error of that. */
export async function clockOf(asker: Asker): Promise<{ offsetMs: number; errorMs: number }> {
  const since = unixMs();
  const [seconds, micros] = (await asker.must('TIME')).items!.map((part) => Number(text(part)));
  const until = unixMs();
  return {
    offsetMs: Math.round(seconds * 1000 + micros / 1000 - (since + until) / 2),
    errorMs: Math.ceil((until - since) / 2),
  };
}

/** Calls since the server started, by the command's name. @param stats of INFO commandstats */
export function callsOf(stats: ReadonlyMap<string, string>): Map<string, number> {
  const calls = new Map<string, number>();
  for (const [field, value] of stats) {
    const [, count] = /^calls=(\d+)/.exec(value) ?? [];
    if (field.startsWith('cmdstat_') && count !== undefined) calls.set(field.slice('cmdstat_'.length), Number(count));
  }
  return calls;
}
