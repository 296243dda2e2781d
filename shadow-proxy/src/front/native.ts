/** The native module: clients' sockets in C (`shadow-proxy/native`). Where it cannot be loaded, Node does the work. */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Listen } from '../plan/endpoint.js';
import type { Plan } from '../plan/plan.js';

/** A front, in its own words. */
export type Handle = { readonly native: unique symbol };

export interface Native {
  /**
   * Makes a front with two rings (`ring.ts`), and polls it in the event loop.
   * @param ringBytes of each ring; a power of two, at least 4 × `MOST`
   * @param threaded whether it runs in a thread of its own, once it listens
   * @param onRing is called when there is something in the ring, or room again
   * @returns `out` and `in` as the sequencing thread sees them
   */
  open(ringBytes: number, threaded: boolean, onRing: () => void): { handle: Handle; out: ArrayBuffer; in: ArrayBuffer };
  /**
   * Accepts from a listening socket, which stays the caller's, too.
   * @throws {Error} with the system's `code`
   */
  listenOn(handle: Handle, descriptor: number, mostClients: number): void;
  /**
   * Listens at a numeric address that other fronts listen at, too.
   * @throws {Error} with the system's `code`, such as `EADDRINUSE`
   */
  listenAt(handle: Handle, address: string, port: number, mostClients: number): void;
  /** Has what is in the ring sent. @returns whether to look into the other ring */
  send(handle: Handle): boolean;
  /** Ends its thread, and closes every socket. */
  stop(handle: Handle): void;
}

const FILE = fileURLToPath(new URL('../../native/front.node', import.meta.url));

interface Loaded {
  readonly native: Native | null;
  /** Why it cannot be loaded. */
  readonly problem: string | null;
}

let loaded: Loaded | undefined;

/** The module; it is looked for once. */
export function loadNative(): Loaded {
  if (loaded === undefined) {
    try {
      loaded = { native: createRequire(import.meta.url)(FILE) as Native, problem: null };
    } catch (problem) {
      loaded = { native: null, problem: (problem as Error).message.split('\n')[0] };
    }
  }
  return loaded;
}

/** What reads and writes the sockets of clients that connect there; null: Node. It does no TLS. */
export const nativeFor = (sockets: Plan['sockets'], { tls }: Pick<Listen, 'tls'>): Loaded =>
  sockets === 'node' || tls !== null ? { native: null, problem: null } : loadNative();
