/** Reads a plan, and the files that it names, up to a maximum size. */
import { closeSync, openSync, readSync } from 'node:fs';

const MAX_BYTES = 4 << 20;
const CHUNK = 64 << 10;

/** A file that cannot be read. `code` is the system's error code, or `TOO_LARGE`. */
export class FileError extends Error {
  constructor(readonly code: string) {
    super(code);
  }
}

/**
 * Reads a whole file. The bytes are counted while they are read, because a device or a pipe has no size.
 * @throws {FileError}
 */
export function readWhole(file: string): Buffer {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, 'r');
    const chunks: Buffer[] = [];
    for (let bytes = 0; bytes <= MAX_BYTES;) {
      const chunk = Buffer.alloc(CHUNK);
      const read = readSync(descriptor, chunk);
      if (read === 0) return Buffer.concat(chunks);
      chunks.push(chunk.subarray(0, read));
      bytes += read;
    }
  } catch (error) {
    throw new FileError((error as NodeJS.ErrnoException).code ?? (error as Error).message);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
  throw new FileError(`TOO_LARGE: over ${MAX_BYTES >> 20} MiB`);
}
