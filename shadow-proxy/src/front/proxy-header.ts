/**
 * The header of HAProxy's PROXY protocol, versions 1 and 2: what a load balancer sends before the first byte of a
 * client, so that the server knows the client's address. The format is that of HAProxy's `doc/proxy-protocol.txt`.
 *
 *   version 1   PROXY TCP4 192.0.2.1 203.0.113.7 56324 6379\r\n
 *   version 2   12 bytes of signature, version and command, family, u16 length, addresses, TLVs (skipped)
 *
 * Pure: no sockets.
 */
import { isIP } from 'node:net';
import { shortest } from '../plan/networks.js';

/** Maximum number of bytes of a header of version 1 (by the format), and of one of version 2 with its TLVs (ours). */
const MAX_V1 = 107;
export const MAX_HEADER = 16_384;

/** Where a client is: at a host with a port, or at a Unix socket with a path (then the port is 0). */
export interface Peer {
  readonly address: string;
  readonly port: number;
}

/** Why a connection is closed. `cut`: it ended within the header. `outside`: its address may not send a header. */
export type HeaderProblem = 'missing' | 'malformed' | 'oversized' | 'late' | 'cut' | 'outside';

/**
 * `absent`: the bytes begin with no header. `peer` is null if the header names no client (`LOCAL`, `UNKNOWN`): then the
 * socket's address is the client's. `length`: bytes of the header.
 */
export type Header =
  | { readonly is: 'unfinished' | 'absent' | 'malformed' | 'oversized' }
  | { readonly is: 'whole'; readonly length: number; readonly peer: Peer | null };

const V1 = Buffer.from('PROXY');
const V2_SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
/** Bytes of version 2 before the addresses. */
const V2_HEAD = 16;
const LOCAL = 0x20;
const PROXY = 0x21;
/** Bytes of the addresses of version 2, by family and transport. Datagrams cannot come over a stream. */
const ADDRESS_BYTES: Readonly<Record<number, number>> = { 0x00: 0, 0x11: 12, 0x21: 36, 0x31: 216 };
const [CR, LF, SPACE] = [13, 10, 32];

/** @param bytes all bytes that a connection has sent so far */
export function readHeader(bytes: Buffer): Header {
  if (begins(bytes, V2_SIGNATURE)) return readV2(bytes);
  if (begins(bytes, V1)) return readV1(bytes);
  return { is: 'absent' };
}

/** Whether the bytes begin with the signature, or may when more come. */
function begins(bytes: Buffer, signature: Buffer): boolean {
  const length = Math.min(bytes.length, signature.length);
  return bytes.compare(signature, 0, length, 0, length) === 0;
}

function readV1(bytes: Buffer): Header {
  const end = bytes.subarray(0, MAX_V1).indexOf(LF);
  if (bytes.length > V1.length && bytes[V1.length] !== SPACE) return { is: 'malformed' };
  if (end === -1) return { is: bytes.length < MAX_V1 ? 'unfinished' : 'oversized' };
  if (bytes[end - 1] !== CR) return { is: 'malformed' };
  const fields = bytes.toString('latin1', V1.length + 1, end - 1).split(' ');
  // Whatever follows UNKNOWN has no meaning.
  if (fields[0] === 'UNKNOWN') return { is: 'whole', length: end + 1, peer: null };
  const [family, source, destination, from, to] = fields;
  const isAddress = family === 'TCP4' ? isIPv4 : family === 'TCP6' ? isIPv6 : () => false;
  if (fields.length !== 5 || !isAddress(source) || !isAddress(destination)) return { is: 'malformed' };
  if (!isPort(from) || !isPort(to)) return { is: 'malformed' };
  const address = family === 'TCP4' ? source : shortest(source);
  return { is: 'whole', length: end + 1, peer: { address, port: Number(from) } };
}

function readV2(bytes: Buffer): Header {
  if (bytes.length < V2_HEAD) return { is: 'unfinished' };
  const [command, family] = [bytes[V2_SIGNATURE.length], bytes[V2_SIGNATURE.length + 1]];
  const size = bytes.readUInt16BE(V2_SIGNATURE.length + 2);
  if (command !== LOCAL && command !== PROXY) return { is: 'malformed' };
  const addressBytes = ADDRESS_BYTES[family] as number | undefined;
  if (command === PROXY && (addressBytes === undefined || size < addressBytes)) return { is: 'malformed' };
  const length = V2_HEAD + size;
  if (length > MAX_HEADER) return { is: 'oversized' };
  if (bytes.length < length) return { is: 'unfinished' };
  return { is: 'whole', length, peer: command === LOCAL ? null : peerIn(bytes.subarray(V2_HEAD, length), family) };
}

/** @param block the addresses of version 2, at least as many bytes as the family has */
function peerIn(block: Buffer, family: number): Peer | null {
  if (family === 0x11) return { address: block.subarray(0, 4).join('.'), port: block.readUInt16BE(8) };
  if (family === 0x21) {
    const words = Array.from({ length: 8 }, (_, i) => block.readUInt16BE(2 * i).toString(16));
    return { address: shortest(words.join(':')), port: block.readUInt16BE(32) };
  }
  if (family === 0x31) return unixPeer(block.subarray(0, 108));
  return null;
}

/** A client at a Unix socket. One without a name says nothing of the client. */
function unixPeer(path: Buffer): Peer | null {
  // The name of an abstract socket begins with a zero byte, which is shown as @.
  const end = path.indexOf(0, 1);
  const name = path.toString('latin1', path[0] === 0 ? 1 : 0, end === -1 ? path.length : end);
  if (name === '') return null;
  // A list of clients has one line for each, with a space between two fields.
  const shown = name.replace(/[^!-~]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return { address: path[0] === 0 ? `@${shown}` : shown, port: 0 };
}

const isIPv4 = (text: string): boolean => isIP(text) === 4;
const isIPv6 = (text: string): boolean => isIP(text) === 6 && !text.includes('%');
const isPort = (text: string): boolean => /^(0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535;
