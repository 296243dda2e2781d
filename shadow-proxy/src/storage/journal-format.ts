/**
 * The layout of the journal's two files.
 *
 * A file has the length of its segment from the beginning, and is full of zeros behind the last batch: so its length
 * shows if the file was cut. Numbers are little-endian.
 *
 *   header   8 bytes of magic, 8 of the process, 8 of the process whose journal this one repeats, 36 of the host's
 *            boot ID, 4 of CRC-32 of those; 4 that are not zero while a write is missing; 4 that are not zero once the
 *            process serves
 *   batch    4 bytes of CRC-32 (continued from the batch before, or the header), 4 of length, records
 *   record   1 byte of kind, 4 of database, 4 of length, the bytes
 */
import { join } from 'node:path';
import { disk } from '../io/files.js';
import { crc32 } from './checksum.js';

/** A file of this size is rotated. */
export const SEGMENT_BYTES = 4 << 20;
export const MAGIC = Buffer.from('shadow-2');
export const BOOT_BYTES = 36;
export const CHECKED = 24 + BOOT_BYTES;
export const GAP_AT = CHECKED + 4;
export const SERVES_AT = GAP_AT + 4;
export const HEADER = SERVES_AT + 4;
export const NO = Buffer.alloc(4);
export const YES = Buffer.alloc(4, 0xff);
/** Bytes of a batch's CRC and length. */
export const FRAME = 8;
export const HEAD = 9;
export const KEY = 1;
export const WORKLOAD = 2;
export const EVERYTHING = 3;
/** A suspect that nothing is known to have written: it may be a foreign key. */
export const UNWRITTEN = 4;

/** @param before the process whose journal this one repeats */
export function headerOf(id: string, before: string): Buffer {
  const header = Buffer.alloc(HEADER);
  MAGIC.copy(header);
  header.write(id, 8, 8, 'hex');
  header.write(before, 16, 8, 'hex');
  header.write(bootId() ?? '', 24, BOOT_BYTES, 'latin1');
  header.writeUInt32LE(crc32(header, 0, CHECKED), CHECKED);
  return header;
}

/** The boot ID of the running system; null if the system does not show one. */
export function bootId(): string | null {
  try {
    return disk.readFile('/proc/sys/kernel/random/boot_id').toString('latin1').trim().slice(0, BOOT_BYTES);
  } catch {
    return null;
  }
}

export const NAMES = ['journal-a', 'journal-b'] as const;
export const pathsIn = (directory: string): string[] => NAMES.map((name) => join(directory, name));
