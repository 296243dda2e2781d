/**
 * The native module: clients' sockets in C (`shadow-proxy/native`). If it cannot be loaded, Node's sockets are used.
 */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Listen } from '../plan/endpoint.js';
import type { Plan } from '../plan/plan.js';

/** A front of the native module. */
export type Handle = { readonly native: unique symbol };

export interface Native {
  /**
   * Creates a front with two rings (`shared-ring.ts`), and polls it in the event loop.
   * @param ringBytes size of each ring; a power of two, at least 4 × `MOST`
   * @param threaded whether the front runs in a thread of its own, once it listens
   * @param onRing called when the ring has records, or there is room again
   * @returns `out` and `in` as the sequencing thread sees them
   */
  open(ringBytes: number, threaded: boolean, onRing: () => void): { handle: Handle; out: ArrayBuffer; in: ArrayBuffer };
  /**
   * Accepts from a listening socket, which also stays the caller's.
   * @throws {Error} with the system's `code`
   */
  listenOn(handle: Handle, descriptor: number, mostClients: number): void;
  /**
   * Listens at a numeric address that other fronts use, too.
   * @throws {Error} with the system's `code`, such as `EADDRINUSE`
   */
  listenAt(handle: Handle, address: string, port: number, mostClients: number): void;
  /** Sends the records in the ring. @returns whether to look into the other ring */
  send(handle: Handle): boolean;
  /** Ends the front's thread, and closes every socket. */
  stop(handle: Handle): void;
}

const FILE = fileURLToPath(new URL('../../native/front.node', import.meta.url));

interface LoadedModule {
  readonly native: Native | null;
  /** Why the module cannot be loaded; null if it can. */
  readonly problem: string | null;
}

let loaded: LoadedModule | undefined;

/** The module; it is loaded once. */
export function loadNative(): LoadedModule {
  if (loaded === undefined) {
    try {
      loaded = { native: createRequire(import.meta.url)(FILE) as Native, problem: null };
    } catch (problem) {
      loaded = { native: null, problem: (problem as Error).message.split('\n')[0] };
    }
  }
  return loaded;
}

/**
 * The module for the sockets of clients that connect to this address; null: Node's sockets. The native module has no
 * TLS.
 */
export const nativeFor = (sockets: Plan['sockets'], { tls }: Pick<Listen, 'tls'>): LoadedModule =>
  sockets === 'node' || tls !== null ? { native: null, problem: null } : loadNative();
