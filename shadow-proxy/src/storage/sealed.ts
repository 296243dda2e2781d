/**
 * JSON documents with a seal, which shows that they are as they were written. A checksum detects damage, but not
 * forgery. If a process writes a document for the next process, the names of both detect an older copy that was
 * restored.
 */
import { printable } from '../text/printable.js';
import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { disk, replaceFile } from '../io/files.js';

const DIGITS = 16;
const digest = (value: object): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, DIGITS);

/** The JSON text of the value. Its last field, `checksum`, is the checksum of the rest. */
export const seal = (value: object, indent?: number): string =>
  JSON.stringify({ ...value, checksum: digest(value) }, null, indent);

/**
 * The value that `seal` was given.
 * @throws {Error} if the text is not JSON, or was changed; the message says which
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
 * The author of a document: the process that writes it, and the one that served before. 16 hex digits each; null if no
 * process has served yet.
 */
export interface Author {
  readonly process: string;
  readonly before: string | null;
}

/**
 * Replaces the whole file. It survives the process, but not a crash of the host. @throws {Error} if the disk does not
 * take it
 */
export function writeSealed(path: string, author: Author, value: object): void {
  replaceFile(path, seal({ author, value }));
}

export interface ReadResult<T> {
  /** Null if there is nothing that can be trusted. */
  readonly value: T | null;
  /** Why the file cannot be trusted; null if it can, or there is no file. */
  readonly problem: string | null;
}

/**
 * What the process that served last wrote, or a later process that never served.
 * @param served the process that served last, as the state names it; null if none did
 */
export function readSealed<T>(path: string, served: string | null, schema: z.ZodType<T>): ReadResult<T> {
  const no = (problem: string | null): ReadResult<T> => ({
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
