/** Where a server is: a fixed address, or a master that Sentinel names. */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, TLSSocket, type ConnectionOptions } from 'node:tls';
import { decodeReply, isNull, text } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';
import { FrameScanner } from '../resp/scan.js';
import type { Address, ClientTls, Endpoint, SentinelEndpoint } from '../plan/endpoint.js';

/** What a connection says of itself before anything else. `username` is absent for password-only servers. */
export interface Credentials {
  readonly username?: string;
  readonly password: string;
}

const SENTINEL_TIMEOUT_MS = 2_000;

/** None of the sentinels could name the master. */
export class SentinelError extends Error {
  readonly code = 'SENTINEL';
}

export class Dialer {
  readonly #sentinels: Address[];
  #credentials: Credentials | undefined;
  /** When the certificate that the server showed last ends, in ms since 1970; null before, and in the clear. */
  certificateEndsAt: number | null = null;

  /** @param timeoutMs for one attempt */
  constructor(
    private endpoint: Endpoint,
    public timeoutMs: number,
  ) {
    this.#credentials = credentialsOf(endpoint);
    this.#sentinels = endpoint.kind === 'sentinel' ? [...endpoint.sentinels] : [];
  }

  /** The endpoint for people: no password in it. */
  get label(): string {
    return this.endpoint.label;
  }

  get credentials(): Credentials | undefined {
    return this.#credentials;
  }

  /** From the next connection on: the same server or master, perhaps with another password or certificate. */
  renew(endpoint: Endpoint, timeoutMs: number): void {
    this.endpoint = endpoint;
    this.timeoutMs = timeoutMs;
    this.#credentials = credentialsOf(endpoint);
  }

  get followsSentinel(): boolean {
    return this.endpoint.kind === 'sentinel';
  }

  /**
   * The address to connect to now.
   * @throws {SentinelError} when no sentinel answers with a master
   */
  async resolve(): Promise<Address> {
    const { endpoint } = this;
    if (endpoint.kind === 'server') return endpoint;
    const failures: string[] = [];
    for (let i = 0; i < this.#sentinels.length; i++) {
      const sentinel = this.#sentinels[i];
      try {
        const address = await this.#askSentinel(sentinel, endpoint);
        // The one that answered is asked first the next time.
        this.#sentinels.splice(i, 1);
        this.#sentinels.unshift(sentinel);
        return address;
      } catch (error) {
        failures.push(`${sentinel.host}:${sentinel.port}: ${(error as Error).message}`);
      }
    }
    throw new SentinelError(`no Sentinel knows a master "${endpoint.master}" (${failures.join('; ')})`);
  }

  async connect(address: Address): Promise<Socket> {
    const socket = await open(address, this.endpoint.tls, this.timeoutMs);
    if (socket instanceof TLSSocket) this.certificateEndsAt = Date.parse(socket.getPeerCertificate().valid_to);
    return socket;
  }

  /**
   * Looks at the server's certificate as it is now: connections that were made before a renewal still have the old one.
   */
  async lookAtCertificate(): Promise<void> {
    if (this.endpoint.tls === null) return;
    (await this.connect(await this.resolve())).destroy();
  }

  /** Over the same kind of connection as the server's: with `rediss+sentinel://`, TLS before the first byte. */
  async #askSentinel(sentinel: Address, endpoint: SentinelEndpoint): Promise<Address> {
    const socket = await open(sentinel, endpoint.tls, SENTINEL_TIMEOUT_MS);
    return new Promise((resolve, reject) => {
      const scanner = new FrameScanner();
      let received = Buffer.alloc(0);
      socket.setTimeout(SENTINEL_TIMEOUT_MS, () => socket.destroy(new Error('timed out')));
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('closed the connection')));
      const { sentinelUsername: username, sentinelPassword: password } = endpoint;
      if (password) socket.write(encodeCommand(username ? ['AUTH', username, password] : ['AUTH', password]));
      socket.write(encodeCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', endpoint.master]));
      socket.on('data', (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
        let at = 0;
        for (let skip = password ? 1 : 0; ; skip--) {
          const end = scanner.scan(received, at, received.length);
          if (end === -1) return;
          if (skip === 0) break;
          at = end;
        }
        const { reply } = decodeReply(received, at);
        socket.destroy();
        if (isNull(reply)) reject(new Error('does not know this master name'));
        else if (!reply.items) reject(new Error(text(reply)));
        else resolve({ host: text(reply.items[0]), port: Number(text(reply.items[1])) });
      });
    });
  }
}

/**
 * A connection that is ready to write to; with `tls`, only after the peer's certificate was verified.
 * @throws {Error} not connected within `timeoutMs`, not TLS, or not verified
 */
function open({ host, port }: Address, tls: ClientTls | null, timeoutMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const options: ConnectionOptions = { servername: isIp(host) ? undefined : host, ...tls, host, port };
    const socket: Socket = tls ? connectTls(options) : connectTcp({ host, port, noDelay: true });
    const late = (): string =>
      tls && !socket.connecting
        ? `${host}:${port} did not answer a TLS handshake within ${timeoutMs} ms: use the TLS port of the server`
        : `no connection to ${host}:${port} within ${timeoutMs} ms`;
    const timer = setTimeout(() => socket.destroy(new Error(late())), timeoutMs);
    const failed = (error: NodeJS.ErrnoException): void => {
      clearTimeout(timer);
      // OpenSSL's word for a first answer that is no TLS record, such as an error reply in plaintext.
      const plaintext = error.code === 'ERR_SSL_WRONG_VERSION_NUMBER';
      reject(plaintext ? new Error(`${host}:${port} does not speak TLS: use the TLS port of the server`) : error);
    };
    socket.once('error', failed);
    socket.once(tls ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer);
      socket.off('error', failed);
      resolve(socket);
    });
  });
}

const credentialsOf = ({ username, password }: Endpoint): Credentials | undefined =>
  password === null ? undefined : { username: username ?? undefined, password };

const isIp = (host: string): boolean => /^[\d.]+$|:/.test(host);
