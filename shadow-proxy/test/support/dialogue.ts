/** The same words said to Redis and to the proxy: what each answers, byte by byte. */
import assert from 'node:assert/strict';
import { encodeCommand, type Argument } from '../../src/resp/encode.js';
import { Wire } from './wire.js';

/** One command, or bytes as they are. */
export type Line = readonly Argument[] | Buffer;

/**
 * What is answered to all lines, each sent when the one before was answered; `(closed)` at the end if the connection
 * was.
 */
export async function answers(port: number, lines: readonly Line[]): Promise<string[]> {
  const wire = await Wire.open({ port });
  const replies: string[] = [];
  try {
    for (const line of lines) {
      wire.sendBytes(Buffer.isBuffer(line) ? line : encodeCommand(line));
      replies.push(masked(await wire.frame(2000)));
    }
  } catch (error) {
    replies.push(wire.ended ? '(closed)' : `(${(error as Error).message})`);
  } finally {
    wire.destroy();
  }
  return replies;
}

/** What differs between two connections to one and the same server. */
const masked = (frame: string): string =>
  frame
    .replace(/(\$2\r\nid\r\n):\d+/, '$1:(id)')
    .replace(/\bid=\d+/g, 'id=(id)')
    .replace(/\b(l?addr)=\S+/g, '$1=(address)');

/** A reply to HELLO, as of a server without modules: the proxy names none, a Valkey 9.1 its Lua, a Redis 8 its own. */
const withoutModules = (frame: string): string => frame.replace(/(\$7\r\nmodules\r\n)\*[1-9].*$/s, '$1*0');

/** Asserts that the proxy answers each dialogue as Redis does; `redis` must not be a server behind the proxy. */
export async function assertSame(proxy: number, redis: number, dialogues: readonly (readonly Line[])[]): Promise<void> {
  for (const lines of dialogues) {
    const got = await answers(proxy, lines);
    const expected = (await answers(redis, lines)).map(withoutModules);
    const shown = lines.map((line) =>
      Buffer.isBuffer(line) ? JSON.stringify(line.toString('latin1')).slice(0, 80) : line.join(' ').slice(0, 80),
    );
    assert.deepEqual(got, expected, shown.join(' ⏎ '));
  }
}
