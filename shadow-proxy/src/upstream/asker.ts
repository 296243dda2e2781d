/** A server that is asked questions, each of which changes nothing: for the operator's tools, beside the lanes. */
import { parseInfo } from './server.js';
import { Connection } from './connection.js';
import { Dialer } from './dialer.js';
import { Turn } from '../io/turn.js';
import type { Address, Endpoint } from '../plan/endpoint.js';
import { isError, text, type Reply } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';

const CONNECT_MS = 5_000;

/** A server could not be asked at all; the message says which, and why. */
export class AskError extends Error {
  override readonly name = 'AskError';
}

/** One server and what is asked of it. */
export class Asker {
  readonly refusals: string[] = [];

  private constructor(
    private readonly connection: Connection,
    private readonly endpoint: Endpoint,
    /** Where it was found. */
    readonly address: Address,
  ) {}

  static async connect(endpoint: Endpoint): Promise<Asker> {
    try {
      const dialer = new Dialer(endpoint, CONNECT_MS);
      const address = await dialer.resolve();
      const connection = new Connection(await dialer.connect(address), new Turn());
      const asker = new Asker(connection, endpoint, address);
      const { credentials } = dialer;
      if (credentials !== undefined)
        await asker.must(
          'AUTH',
          ...(credentials.username === undefined ? [] : [credentials.username]),
          credentials.password,
        );
      return asker;
    } catch (problem) {
      throw new AskError(`${endpoint.label}: ${(problem as Error).message}`);
    }
  }

  /** @throws {AskError} where it is refused */
  async must(...command: Argument[]): Promise<Reply> {
    const reply = await this.connection.ask(...command);
    if (isError(reply)) throw new AskError(`${this.endpoint.label} refuses ${String(command[0])}: ${text(reply)}`);
    return reply;
  }

  /** Null where it is refused. */
  async may(...command: Argument[]): Promise<Reply | null> {
    const reply = await this.connection.ask(...command);
    if (!isError(reply)) return reply;
    this.refusals.push(`${command.slice(0, 2).join(' ')}: ${text(reply)}`);
    return null;
  }

  async info(section?: string): Promise<Map<string, string>> {
    return parseInfo(text(await this.must('INFO', ...(section === undefined ? [] : [section]))));
  }

  all(commands: readonly (readonly Argument[])[]): Promise<Reply[]> {
    return this.connection.askAll(commands);
  }

  close(): void {
    this.connection.destroy();
  }
}

/** The server's clock minus this machine's in ms, and by how much that may be wrong. */
export async function clockOf(asker: Asker): Promise<{ offsetMs: number; errorMs: number }> {
  const since = Date.now();
  const [seconds, micros] = (await asker.must('TIME')).items!.map((part) => Number(text(part)));
  const until = Date.now();
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
