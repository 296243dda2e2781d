/** Arguments as they are sent, and replies as JavaScript. */

export type Argument = string | Buffer;

/** A reply as JavaScript: integers as numbers, bulks as Buffers, maps as flat arrays. */
export type Plain = string | number | bigint | boolean | Buffer | null | Error | readonly Plain[];

/** A scalar's text (bytes as latin1); null for null and aggregates. */
export function textOf(reply: Plain): string | null {
  if (Buffer.isBuffer(reply)) return reply.toString('latin1');
  return reply === null || typeof reply === 'object' ? null : String(reply);
}
