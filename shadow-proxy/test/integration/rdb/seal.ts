import { Crc64 } from '../../../src/copy/rdb/crc64.js';

/** A payload of any content with a right footer. */
export function seal(content: Buffer | readonly number[], version = 9): Buffer {
  const out = Buffer.concat([Buffer.from(content), Buffer.from([version & 255, version >> 8]), Buffer.alloc(8)]);
  const at = out.length - 8;
  const crc = new Crc64().update(out, 0, at);
  out.writeUInt32LE(crc.low, at);
  out.writeUInt32LE(crc.high, at + 4);
  return out;
}

/** The payload with what is before its footer changed, and the checksum right again. */
export function tampered(payload: Buffer, change: (content: Buffer) => Buffer | void): Buffer {
  const content = Buffer.from(payload.subarray(0, -10));
  return seal(change(content) ?? content, payload.readUInt16LE(payload.length - 10));
}
