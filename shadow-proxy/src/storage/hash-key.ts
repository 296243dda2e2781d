/**
 * The key of the hashes under which keys stand in the ledger, the log and the reports: `<state>/<shard>/hash-key`, 32
 * bytes in hex. With it, a known key can be looked up; without it a hash shows nothing, however short or guessable
 * the key is.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const BYTES = 32;
const FILE = 'hash-key';

/** Null where there is none. @throws {Error} where it is damaged, or cannot be read */
export function readHashKey(directory: string): Buffer | null {
  const path = join(directory, FILE);
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Error(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  if (/^[0-9a-f]{64}$/.test(text)) return Buffer.from(text, 'hex');
  throw new Error(`${path} is damaged: it is not ${2 * BYTES} hex digits`);
}

/** Makes one, in place of what is there. @throws {Error} where it cannot be written */
export function makeHashKey(directory: string): Buffer {
  const path = join(directory, FILE);
  const key = randomBytes(BYTES);
  writeFileSync(`${path}.tmp`, `${key.toString('hex')}\n`, { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
  return key;
}
