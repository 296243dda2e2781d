/** The hash slot of a key, as the specification of Redis Cluster has it: CRC-16 of the key, or of its hash tag. */
export const SLOTS = 16_384;

export function slotOf(key: string): number {
  const tag = /^[^{]*\{([^}]+)\}/.exec(key);
  let crc = 0;
  for (const byte of Buffer.from(tag === null ? key : tag[1], 'latin1')) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0);
    crc &= 0xffff;
  }
  return crc % SLOTS;
}
