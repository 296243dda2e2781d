/** Removes old lines of a ledger, from the current file and from rotated ones. */
import { basename, dirname, join } from 'node:path';
import { diskAsync, writeFileAsync } from '../io/files.js';

/**
 * Removes the lines that are older than `before`; a file without lines is deleted.
 * @returns whether `file` itself was replaced
 * @throws {Error} if the disk fails
 */
export async function pruneLines(file: string, before: Date): Promise<boolean> {
  const directory = dirname(file);
  const oldest = before.toISOString();
  let replaced = false;
  for (const name of await diskAsync.list(directory).catch(() => [])) {
    const aside = name.slice(basename(file).length);
    if (!name.startsWith(basename(file)) || !/^(\.\d+)?$/.test(aside)) continue;
    const pruned = await prune(join(directory, name), before, oldest);
    if (aside === '') replaced = pruned;
  }
  return replaced;
}

/** @returns whether anything was removed */
async function prune(path: string, before: Date, oldest: string): Promise<boolean> {
  // The whole file is old, so it need not be read.
  const isOld = (await diskAsync.stat(path)).mtimeMs < before.getTime();
  const lines = isOld ? [] : (await diskAsync.readFile(path)).toString().split('\n');
  // The lines are in the order of their times. Every line before the first one that is kept is removed, even if it
  // cannot be read.
  const first = lines.findIndex((line) => (timeOf(line) ?? '') >= oldest);
  if (first === 0) return false;
  if (first === -1) {
    await diskAsync.remove(path);
    return true;
  }
  await writeFileAsync(`${path}.tmp`, 'w', Buffer.from(lines.slice(first).join('\n')));
  await diskAsync.rename(`${path}.tmp`, path);
  return true;
}

const timeOf = (line: string): string | undefined => /^\{"time":"([^"]+)"/.exec(line)?.[1];
