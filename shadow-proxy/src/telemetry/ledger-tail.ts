/**
 * The last lines of a ledger for viewers who may not see keys and replies, which are left out.
 */
import * as z from 'zod';
import { disk } from '../io/files.js';
import { SIDES } from '../route/stage.js';

const reply = z.object({ type: z.string(), bytes: z.number(), hash: z.string() });
/** Other fields of a line are dropped. */
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

/** A line of the ledger with hashes and sizes instead of keys and replies. */
export type RedactedEntry = Readonly<z.infer<typeof entry>>;

export const redactEntry = (line: unknown): RedactedEntry => entry.parse(line);

const TAIL_BYTES = 256 * 1024;

/**
 * The last lines of a ledger, the newest last, including those of the file before the last rotation; empty if it cannot
 * be read.
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
        // The first line may be cut, the last one is empty.
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
