/** The address of a server: a fixed one, or that of a master named by Sentinel or by its cluster. */
import type { TcpSocket, TlsSocket } from '../io/sockets.js';
import { isNull, text, errorText } from '../resp/decode.js';
import {
  addressesOf,
  formatAddress,
  type Address,
  type ClusterEndpoint,
  type Endpoint,
  type SentinelEndpoint,
} from '../plan/endpoint.js';
import { formatSlots, masterOf } from '../plan/cluster-shards.js';
import { askOnce, type Credentials } from './ask-once.js';
import { openSocket } from './open-socket.js';
import { readReplicas, readSlots } from './slots.js';

export type { Credentials };

/** No Sentinel, or no node of the cluster, could name the server. */
export class NoMasterError extends Error {
  readonly code = 'NO_MASTER';
}

export class Dialer {
  /** The servers that are asked for the address: Sentinels, or nodes of the cluster. */
  #guides: Address[];
  #credentials: Credentials | undefined;
  /** The last known address of the cluster's node. */
  #last: Address | null = null;
  /** When the server's certificate expires, in ms since 1970, as last seen; null before that, and without TLS. */
  certificateEndsAt: number | null = null;

  /**
   * @param timeoutMs the time limit of one attempt
   * @param role which of a cluster's nodes: the master, or a replica of it
   */
  constructor(
    private endpoint: Endpoint,
    public timeoutMs: number,
    private readonly role: 'master' | 'replica' = 'master',
  ) {
    this.#credentials = credentialsOf(endpoint);
    this.#guides = endpoint.kind === 'server' ? [] : [...addressesOf(endpoint)];
  }

  /** The endpoint for people, without a password. */
  get label(): string {
    return this.endpoint.label;
  }

  get credentials(): Credentials | undefined {
    return this.#credentials;
  }

  /**
   * Sets the endpoint of further connections: the same server or master, perhaps with another password or certificate.
   */
  renew(endpoint: Endpoint, timeoutMs: number): void {
    this.endpoint = endpoint;
    this.timeoutMs = timeoutMs;
    this.#credentials = credentialsOf(endpoint);
  }

  /** Whether the endpoint is a node of a cluster. */
  get isCluster(): boolean {
    return this.endpoint.kind === 'cluster';
  }

  /** Whether Sentinel, or a cluster, says which server is the master. */
  get followsMaster(): boolean {
    return this.endpoint.kind !== 'server' && this.role === 'master';
  }

  /**
   * The address to connect to now.
   * @throws {NoMasterError} if no Sentinel, or no node of the cluster, answers with one
   */
  async resolve(): Promise<Address> {
    const { endpoint } = this;
    if (endpoint.kind === 'server') return endpoint;
    const failures: string[] = [];
    for (const [i, guide] of this.#guides.entries()) {
      try {
        const address = await (endpoint.kind === 'sentinel'
          ? askSentinel(guide, endpoint)
          : this.#askNode(guide, endpoint));
        // The one that answered is asked first the next time.
        this.#guides = [guide, ...this.#guides.toSpliced(i, 1)];
        return address;
      } catch (error) {
        failures.push(`${formatAddress(guide)}: ${(error as Error).message}`);
      }
    }
    // The master itself runs a script and answers nothing else: its last address is the best known one.
    const master = this.role === 'master' ? this.#last : null;
    if (master !== null && failures.some((failure) => failure.startsWith(`${formatAddress(master)}: BUSY `)))
      return master;
    throw new NoMasterError(
      endpoint.kind === 'sentinel'
        ? `no Sentinel knows a master "${endpoint.master}" (${failures.join('; ')})`
        : `no node of the cluster knows a ${this.role} of slots ${formatSlots(endpoint.slots)} (${failures.join('; ')})`,
    );
  }

  async #askNode(node: Address, endpoint: ClusterEndpoint): Promise<Address> {
    return (this.#last = await (this.role === 'master'
      ? this.#masterBy(node, endpoint)
      : this.#replicaBy(node, endpoint)));
  }

  /** Returns the same replica as long as it exists. */
  async #replicaBy(node: Address, { tls, slots }: ClusterEndpoint): Promise<Address> {
    const replicas = await readReplicas(node, tls, this.#credentials, slots);
    const last = this.#last && formatAddress(this.#last);
    const chosen = replicas.find((address) => formatAddress(address) === last) ?? replicas.at(0);
    if (chosen === undefined) throw new Error('has no replica of the master of these slots');
    return chosen;
  }

  async #masterBy(node: Address, { tls, slots }: ClusterEndpoint): Promise<Address> {
    const masters = await readSlots(node, tls, this.#credentials);
    if (masters === null) throw new Error('is not in cluster mode');
    const known = new Set(this.#guides.map(formatAddress));
    this.#guides.push(...masters.map(({ address }) => address).filter((address) => !known.has(formatAddress(address))));
    const master = masterOf(masters, slots);
    if (master === undefined) throw new Error('has no master of these slots');
    return master.address;
  }

  async connect(address: Address): Promise<TcpSocket> {
    const { tls } = this.endpoint;
    const socket = await openSocket(address, tls, this.timeoutMs);
    if (tls !== null) this.certificateEndsAt = Date.parse((socket as TlsSocket).getPeerCertificate().valid_to);
    return socket;
  }

  /** Reads the server's present certificate: connections from before a renewal still show the old one. */
  async readCertificate(): Promise<void> {
    if (this.endpoint.tls === null) return;
    (await this.connect(await this.resolve())).destroy();
  }
}

/** Over the same kind of connection as the server's: with `rediss+sentinel://`, TLS before the first byte. */
async function askSentinel(sentinel: Address, endpoint: SentinelEndpoint): Promise<Address> {
  const { tls, sentinelUsername: username, sentinelPassword: password } = endpoint;
  const credentials = password ? { username: username ?? undefined, password } : undefined;
  const reply = await askOnce(sentinel, tls, credentials, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', endpoint.master);
  if (isNull(reply)) throw new Error('does not know this master name');
  if (!reply.items) throw new Error(errorText(reply));
  return { host: text(reply.items[0]), port: Number(text(reply.items[1])) };
}

const credentialsOf = ({ username, password }: Endpoint): Credentials | undefined =>
  password === null ? undefined : { username: username ?? undefined, password };
