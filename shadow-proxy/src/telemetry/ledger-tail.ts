/**
 * The end of a ledger for those who may not see keys and replies: what a line has of them is left out.
 */
import { z } from 'zod';
import { disk } from '../io/files.js';
import { SIDES } from '../route/stage.js';

const reply = z.object({ type: z.string(), bytes: z.number(), hash: z.string() });
/** Whatever else a line has is dropped. */
const entry = z.object({
  time: z.string(),
  shard: z.string(),
  workload: z.string(),
  command: z.string(),
  db: z.number(),
  kind: z.string(),
  authority: z.enum(SIDES),
  pattern: z.string().nullable().default(null),
  key: z.object({ hash: z.string(), bytes: z.number() }).nullable(),
  source: reply,
  target: reply,
  differsAt: z.number(),
  leftOut: z.number().optional(),
});

/** A line of the ledger without keys and replies, of which hashes and sizes are left. */
export type RedactedEntry = Readonly<z.infer<typeof entry>>;

export const redactEntry = (line: unknown): RedactedEntry => entry.parse(line);

const TAIL_BYTES = 256 * 1024;

/**
 * The last lines of a ledger, the newest last, those of the file before the last rotation among them; none where it
 * cannot be read.
 */
export const readLatest = (file: string, most: number): readonly RedactedEntry[] =>
  [`${file}.1`, file].flatMap(entriesOf).slice(-most);

function entriesOf(file: string): readonly RedactedEntry[] {
  return readTail(file)
    .split('\n')
    .flatMap((line) => {
      try {
        return [redactEntry(JSON.parse(line))];
      } catch {
        // The first may be cut, the last is empty.
        return [];
      }
    });
}

function readTail(file: string): string {
  try {
    const handle = disk.open(file, 'r');
    try {
      const { size } = disk.stat(file);
      const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
      disk.read(handle, bytes, 0, bytes.length, size - bytes.length);
      return bytes.toString('utf8');
    } finally {
      disk.close(handle);
    }
  } catch {
    return '';
  }
}
