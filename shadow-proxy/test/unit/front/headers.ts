/** PROXY headers as a load balancer writes them. */

export const V2_SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');

/** A header of version 2. @param command 0x21: PROXY, 0x20: LOCAL */
export function v2(command: number, family: number, block: Buffer): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt8(command, 0);
  head.writeUInt8(family, 1);
  head.writeUInt16BE(block.length, 2);
  return Buffer.concat([V2_SIGNATURE, head, block]);
}

/** Both addresses of a family, then both ports. */
export function block(source: readonly number[], destination: readonly number[], from: number, to: number): Buffer {
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(from, 0);
  ports.writeUInt16BE(to, 2);
  return Buffer.concat([Buffer.from(source), Buffer.from(destination), ports]);
}

/** A TLV of this type. */
export function tlv(type: number, value: Buffer): Buffer {
  const head = Buffer.alloc(3);
  head.writeUInt8(type, 0);
  head.writeUInt16BE(value.length, 1);
  return Buffer.concat([head, value]);
}

export const FOUR = block([203, 0, 113, 9], [198, 51, 100, 1], 50_321, 6379);
export const SIX = block(
  [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1f],
  [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
  443,
  6379,
);

/** Both paths of Unix sockets, each in 108 bytes. */
export function unixBlock(source: string): Buffer {
  const bytes = Buffer.alloc(216);
  bytes.write(source, 0, 'latin1');
  bytes.write('/run/listener', 108, 'latin1');
  return bytes;
}
