/**
 * Single connections of the proxy to a server behind a relay: found by what is sent on them, so that a test can hold
 * one and see what the proxy sends on the others meanwhile.
 */
import type { Link, Relay } from '../../src/local/relay.js';
import { RequestParser } from '../../src/resp/request.js';
import { until } from './shard.js';

/** One connection, and every command that the proxy has sent on it since the tap was made. */
export class Tap {
  /** Each as its words, such as `SET k v`; also what the link holds and the server has not got. */
  readonly sent: string[] = [];

  constructor(readonly link: Link) {
    const parser = new RequestParser();
    link.client.on('data', (chunk: Buffer) => {
      parser.feed(Buffer.from(chunk));
      while (parser.next())
        this.sent.push(
          Array.from({ length: parser.argc }, (_, i) =>
            parser.frame.toString('latin1', parser.argStart[i], parser.argEnd[i]),
          ).join(' '),
        );
    });
  }

  has(command: string): boolean {
    return this.sent.includes(command);
  }

  /** Resolves when the proxy has sent the command. */
  saw(command: string): Promise<void> {
    return until(
      () => this.has(command),
      10_000,
      () => `"${command}" was not sent, but ${this.sent.slice(-20).join(' | ')}`,
    );
  }

  /** What was sent of these commands, in its order. */
  only(...commands: readonly string[]): string[] {
    return this.sent.filter((command) => commands.includes(command));
  }
}

/** Taps on all connections that are open now. */
export const tap = (relay: Relay): Tap[] => relay.links.map((link) => new Tap(link));

/** The connection on which `command` is sent while `send` runs, among those that are open before it. */
export async function tapOf(relay: Relay, command: string, send: () => Promise<unknown>): Promise<Tap> {
  const taps = tap(relay);
  await send();
  await until(() => taps.some((each) => each.has(command)));
  return taps.find((each) => each.has(command))!;
}
