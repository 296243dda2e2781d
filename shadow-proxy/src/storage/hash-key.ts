/**
 * The secret key for the hashes of keys in the ledger, the log and the reports: `<state>/<shard>/hash-key`, 32 bytes in
 * hex. With it, the hash of a known key can be looked up. Without it, a hash reveals nothing, even if the key is short
 * or easy to guess.
 */
import { join } from 'node:path';
import { disk, replaceFile } from '../io/files.js';
import { randomBytes } from '../io/random.js';

const BYTES = 32;
const FILE = 'hash-key';

/** Null if there is none. @throws {Error} if the file is damaged, or cannot be read */
export function readHashKey(directory: string): Buffer | null {
  const path = join(directory, FILE);
  let text: string;
  try {
    text = disk.readFile(path).toString().trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Error(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  if (/^[0-9a-f]{64}$/.test(text)) return Buffer.from(text, 'hex');
  throw new Error(`${path} is damaged: it is not ${2 * BYTES} hex digits`);
}

/** Creates a key, and replaces an existing one. @throws {Error} if it cannot be written */
export function makeHashKey(directory: string): Buffer {
  const path = join(directory, FILE);
  const key = randomBytes(BYTES);
  replaceFile(path, `${key.toString('hex')}\n`);
  return key;
}
