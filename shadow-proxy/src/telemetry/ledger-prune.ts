/** The end of old lines of a ledger, in the file that is written and in those that were put aside. */
import { basename, dirname, join } from 'node:path';
import { diskAsync, writeFileAsync } from '../io/files.js';

/**
 * Removes the lines that are older than `before`; a file of which nothing is left is deleted.
 * @returns whether `file` itself was replaced
 * @throws {Error} if the disk does not take it
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

/** Whether anything was removed. */
async function prune(path: string, before: Date, oldest: string): Promise<boolean> {
  // A whole file, unread.
  const isOld = (await diskAsync.stat(path)).mtimeMs < before.getTime();
  const lines = isOld ? [] : (await diskAsync.readFile(path)).toString().split('\n');
  // The lines are in the order of their times: every line before the first one that stays is removed, also an
  // unreadable one.
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
