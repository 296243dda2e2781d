/**
 * JSON documents that tell whether they are what was written: with a checksum (against damage, not against forgery),
 * and, where a process wrote them for the one after it, with the names of both (against an older copy that was put
 * back).
 */
import { printable } from '../text/printable.js';
import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { disk, replaceFile } from '../io/files.js';

const DIGITS = 16;
const digest = (value: object): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, DIGITS);

/** With a checksum of the rest in `checksum`, its last field. */
export const seal = (value: object, indent?: number): string =>
  JSON.stringify({ ...value, checksum: digest(value) }, null, indent);

/**
 * The value that `seal` was given.
 * @throws {Error} where the text is not JSON, or not what was sealed; the message says which
 */
export function unseal(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`it is not JSON: ${printable((error as Error).message)}`, { cause: error });
  }
  const { checksum, ...rest } = (value ?? {}) as { checksum?: unknown };
  if (checksum === undefined) throw new Error('it has no checksum');
  if (checksum !== digest(rest)) throw new Error('its checksum does not match: it was damaged, or changed by hand');
  return rest;
}

/**
 * Who writes a document: a process, and the one that served before it. 16 hex digits each; null before any has served.
 */
export interface Author {
  readonly process: string;
  readonly before: string | null;
}

/** Replaced whole; it outlives the process, not the host. @throws {Error} when the disk does not take it */
export function writeSealed(path: string, author: Author, value: object): void {
  replaceFile(path, seal({ author, value }));
}

export interface Read<T> {
  /** Null where there is nothing that can be believed. */
  readonly value: T | null;
  /** Why what is there cannot be believed; null where it can, or nothing is there. */
  readonly problem: string | null;
}

/**
 * What the process that served last wrote, or one after it that never came to serve.
 * @param served the process that served last, as the state names it; null where none did
 */
export function readSealed<T>(path: string, served: string | null, schema: z.ZodType<T>): Read<T> {
  const no = (problem: string | null): Read<T> => ({
    value: null,
    problem: problem && `${path} cannot be used: ${problem}`,
  });
  let sealed: { author?: Author; value?: unknown };
  try {
    sealed = unseal(disk.readFile(path).toString()) as typeof sealed;
  } catch (error) {
    return no((error as NodeJS.ErrnoException).code === 'ENOENT' ? null : (error as Error).message);
  }
  const { author } = sealed;
  if (author === undefined || (author.process !== served && author.before !== served))
    return no('it is an older copy, not that of the process that served last');
  const parsed = schema.safeParse(sealed.value);
  return parsed.success
    ? { value: parsed.data, problem: null }
    : no(`it has an unknown form (${parsed.error.issues[0].message})`);
}
