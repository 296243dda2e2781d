/** IP addresses, and networks in CIDR notation, such as `10.0.0.0/8`. */
import { BlockList, isIP, SocketAddress } from 'node:net';

/** What is wrong with the text; null if it is an address or a network. */
export function networkProblem(text: string): string | null {
  const { address, family, prefix } = parts(text);
  if (family === null) return 'is no address or network: write 10.0.0.0/8, 2001:db8::/32 or 10.1.2.3';
  const most = family === 'ipv4' ? 32 : 128;
  if (!(prefix >= 0 && prefix <= most)) return `needs a number from 0 to ${most} behind ${address}/`;
  return null;
}

/** Several networks. An IPv4 address that is written as an IPv6 address (`::ffff:10.1.2.3`) is in its IPv4 network. */
export class Networks {
  readonly #list = new BlockList();

  /** @param networks texts without a problem */
  constructor(networks: readonly string[]) {
    for (const { address, prefix, family } of networks.map(parts)) this.#list.addSubnet(address, prefix, family!);
  }

  /** Whether the address is in one of the networks. A zone (`fe80::1%eth0`) is left out. */
  has(address: string): boolean {
    const [host] = address.split('%');
    const family = familyOf(host);
    return family !== null && this.#list.check(host, family);
  }
}

/** An IPv6 address as the system writes that of a socket: one address has one text. */
export const shortest = (address: string): string => new SocketAddress({ address, family: 'ipv6' }).address;

type Family = 'ipv4' | 'ipv6';

const familyOf = (address: string): Family | null =>
  isIP(address) === 4 ? 'ipv4' : isIP(address) === 6 ? 'ipv6' : null;

function parts(text: string): { readonly address: string; readonly prefix: number; readonly family: Family | null } {
  const [, address, prefix] = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = address === undefined ? null : familyOf(address);
  const own = family === 'ipv4' ? 32 : 128;
  return { address, family, prefix: prefix === undefined ? own : Number(prefix) };
}
