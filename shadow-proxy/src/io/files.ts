/**
 * Files of the state folder. `disk` blocks the thread: for what must be written before anything is sent, and for small
 * files. `diskAsync` has the same calls, while the thread goes on: for what waits for the disk itself (`sync`).
 */
import { disk, diskAsync } from './world.js';

export { disk, diskAsync };

/** Replaces a file whole: a reader finds the old one or the new one. It outlives the process, not the host. */
export function replaceFile(path: string, text: string): void {
  writeFile(`${path}.tmp`, 'w', text);
  disk.rename(`${path}.tmp`, path);
}

/** Writes `text` to the file, emptied (`w`) or at its end (`a+`). */
export function writeFile(path: string, flags: 'w' | 'a+', text: string): void {
  const bytes = Buffer.from(text);
  const file = disk.open(path, flags);
  try {
    for (let at = 0; at < bytes.length;) at += disk.write(file, bytes, at, bytes.length - at, null);
  } finally {
    disk.close(file);
  }
}

/** As `writeFile`, while the thread goes on; with `sync`, it resolves when the bytes outlive the host. */
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

/** Behind what was written to the open file. */
export async function writeAll(file: number, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await diskAsync.write(file, bytes, at, bytes.length - at, null);
}
