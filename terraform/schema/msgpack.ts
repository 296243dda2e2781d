/**
 * Values as Terraform sends them to a provider: MessagePack, in which a value that is not known yet is an extension.
 * Its JSON has no form for those.
 */

export const UNKNOWN = Symbol('known after apply');

export type Value =
  null | boolean | number | string | typeof UNKNOWN | readonly Value[] | { readonly [name: string]: Value };

export type Members = Readonly<Record<string, Value>>;

export const isMembers = (value: Value | undefined): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Terraform's own reader takes any extension of type 0 for a value that is not known. */
const UNKNOWN_BYTES = Buffer.from([0xd4, 0x00, 0x00]);

export function encode(value: Value): Buffer {
  if (value === UNKNOWN) return UNKNOWN_BYTES;
  if (value === null) return Buffer.from([0xc0]);
  if (typeof value === 'boolean') return Buffer.from([value ? 0xc3 : 0xc2]);
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(9);
    bytes[0] = Number.isSafeInteger(value) ? 0xd3 : 0xcb;
    if (Number.isSafeInteger(value)) bytes.writeBigInt64BE(BigInt(value), 1);
    else bytes.writeDoubleBE(value, 1);
    return bytes;
  }
  if (typeof value === 'string') {
    const text = Buffer.from(value);
    return Buffer.concat([sized(0xdb, text.length), text]);
  }
  if (isMembers(value)) {
    const members = Object.entries(value);
    return Buffer.concat([
      sized(0xdf, members.length),
      ...members.flatMap(([name, member]) => [encode(name), encode(member)]),
    ]);
  }
  return Buffer.concat([sized(0xdd, value.length), ...value.map(encode)]);
}

function sized(kind: number, length: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes[0] = kind;
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

export const decode = (bytes: Uint8Array): Value => new Reader(Buffer.from(bytes)).value();

class Reader {
  #at = 0;

  constructor(private readonly bytes: Buffer) {}

  value(): Value {
    const kind = this.#unsigned(1);
    if (kind <= 0x7f) return kind;
    if (kind >= 0xe0) return kind - 0x100;
    if (kind <= 0x8f) return this.#members(kind & 0x0f);
    if (kind <= 0x9f) return this.#list(kind & 0x0f);
    if (kind <= 0xbf) return this.#text(kind & 0x1f);
    switch (kind) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xca:
        return this.#take(4).readFloatBE();
      case 0xcb:
        return this.#take(8).readDoubleBE();
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.#unsigned(1 << (kind - 0xcc));
      case 0xcf:
        return Number(this.#take(8).readBigUInt64BE());
      case 0xd0:
      case 0xd1:
      case 0xd2:
        return this.#signed(1 << (kind - 0xd0));
      case 0xd3:
        return Number(this.#take(8).readBigInt64BE());
      case 0xc7:
      case 0xc8:
      case 0xc9:
        return this.#extension(this.#unsigned(1 << (kind - 0xc7)));
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:
        return this.#extension(1 << (kind - 0xd4));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.#text(this.#unsigned(1 << (kind - 0xd9)));
      case 0xdc:
      case 0xdd:
        return this.#list(this.#unsigned(2 << (kind - 0xdc)));
      case 0xde:
      case 0xdf:
        return this.#members(this.#unsigned(2 << (kind - 0xde)));
      default:
        throw new Error(`Terraform sends no MessagePack of kind 0x${kind.toString(16)}`);
    }
  }

  #take(length: number): Buffer {
    if (this.#at + length > this.bytes.length) throw new Error('the MessagePack ends within a value');
    return this.bytes.subarray(this.#at, (this.#at += length));
  }

  #unsigned(length: number): number {
    return this.#take(length).readUIntBE(0, length);
  }

  #signed(length: number): number {
    return this.#take(length).readIntBE(0, length);
  }

  #text(length: number): string {
    return this.#take(length).toString();
  }

  /** Whatever is said of the value beside: it is not known. */
  #extension(length: number): typeof UNKNOWN {
    this.#take(length + 1);
    return UNKNOWN;
  }

  #list(length: number): Value[] {
    return Array.from({ length }, () => this.value());
  }

  #members(length: number): Members {
    return Object.fromEntries(Array.from({ length }, () => [this.#name(), this.value()]));
  }

  #name(): string {
    const name = this.value();
    if (typeof name !== 'string') throw new Error('a member of the MessagePack has no name');
    return name;
  }
}
