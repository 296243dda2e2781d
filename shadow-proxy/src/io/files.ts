/**
 * Files of the state folder. `disk` blocks the thread: for data that must be written before anything is sent, and for
 * small files. `diskAsync` has the same calls without blocking: for operations that wait for the disk (`sync`).
 */
import { disk, diskAsync } from './world.js';

export { disk, diskAsync };

/**
 * Replaces a whole file: a reader finds the old one or the new one. The file survives the process, but not a crash of
 * the host.
 */
export function replaceFile(path: string, text: string): void {
  writeFile(`${path}.tmp`, 'w', text);
  disk.rename(`${path}.tmp`, path);
}

/** Writes `text` to the file: the file is emptied first (`w`), or the text is appended (`a+`). */
export function writeFile(path: string, flags: 'w' | 'a+', text: string): void {
  const bytes = Buffer.from(text);
  const file = disk.open(path, flags);
  try {
    for (let at = 0; at < bytes.length;) at += disk.write(file, bytes, at, bytes.length - at, null);
  } finally {
    disk.close(file);
  }
}

/**
 * Writes as `writeFile` does, without blocking the thread. With `sync`, it resolves when the bytes survive a crash of
 * the host.
 */
export async function writeFileAsync(
  path: string,
  flags: 'w' | 'a+',
  bytes: Buffer,
  { sync = false }: { readonly sync?: boolean } = {},
): Promise<void> {
  const file = await diskAsync.open(path, flags);
  try {
    await writeAll(file, bytes);
    if (sync) await diskAsync.sync(file);
  } finally {
    await diskAsync.close(file);
  }
}

/** Appends to the open file. */
export async function writeAll(file: number, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await diskAsync.write(file, bytes, at, bytes.length - at, null);
}
