/**
 * A program of the adversary: what some clients send, what their connections do, and which faults come when. It is
 * JSON, so that a program that found something can be shrunk, kept and run again. Bytes are latin1 text.
 */
import type { Direction } from '../../../shadow-proxy/src/local/relay.js';
import type { Side, Stage } from '../../../shadow-proxy/src/route/stage.js';

export interface Login {
  readonly protocol: 2 | 3;
  /** Null: the default user. */
  readonly user: 'app' | 'narrow' | null;
  readonly db: number;
}

/** The workloads of every program: keys `a:*`, keys `b:*`, and the rest. */
export const WORKLOADS = ['a', 'b', 'default'] as const;
export type WorkloadName = (typeof WORKLOADS)[number];

/** Stages in which writes go to both servers and replies are compared. */
export const STAGES = ['shadow', 'live'] as const satisfies readonly Stage[];

export type Act =
  /** Writes the commands at once, or in pieces of so many bytes, and does not wait for the replies. */
  | {
      readonly do: 'send';
      readonly client: number;
      readonly commands: readonly (readonly string[])[];
      readonly pieces?: readonly number[];
    }
  /** Waits until the client has all replies. */
  | { readonly do: 'await'; readonly client: number }
  /** Ends the connection: a FIN with replies still to come, or a reset. The next `send` opens another. */
  | { readonly do: 'leave'; readonly client: number; readonly how: 'half-close' | 'reset' }
  /** Reads nothing for so long. */
  | { readonly do: 'stop-reading'; readonly client: number; readonly ms: number }
  | Fault
  | { readonly do: 'stage'; readonly workload: WorkloadName; readonly to: (typeof STAGES)[number] }
  /**
   * SIGKILL, and a start on what is left. A killed target restarts empty: only while it is no workload's authority.
   */
  | { readonly do: 'kill'; readonly what: 'proxy' | 'target' }
  | { readonly do: 'pause'; readonly ms: number };

/** After `bytes` more have passed in the direction, the link of the proxy to the server fails. */
export interface Fault {
  readonly do: 'fault';
  readonly side: Side;
  readonly direction: Direction;
  readonly bytes: number;
  /** `cut` ends the connection; `abandon` leaves the server's end open; `silence` passes nothing on for `ms`. */
  readonly kind: 'cut' | 'abandon' | 'silence';
  /** One connection, or all of them and new ones. */
  readonly all: boolean;
  readonly ms: number;
}

export interface Program {
  readonly seed: number;
  readonly stages: Readonly<Record<WorkloadName, (typeof STAGES)[number]>>;
  readonly clients: readonly Login[];
  readonly acts: readonly Act[];
}

/**
 * Times in a program are offsets to the moment at which it runs: a number from this one on, in milliseconds, or in
 * seconds a thousandth of it, stands for that moment and what it is beyond.
 */
export const EPOCH_MS = 4_000_000_000_000;
const ONE_DAY_MS = 86_400_000;

/** The argument as it is sent by a program that runs at `now` (ms since 1970). */
export function argumentAt(argument: string, now: number): string {
  if (!/^\d{10}(\d{3})?$/.test(argument)) return argument;
  const inMs = argument.length === 13;
  const offset = Number(argument) - (inMs ? EPOCH_MS : EPOCH_MS / 1000);
  if (Math.abs(offset) > (inMs ? ONE_DAY_MS : ONE_DAY_MS / 1000)) return argument;
  return String(Math.ceil(inMs ? now + offset : now / 1000 + offset));
}
