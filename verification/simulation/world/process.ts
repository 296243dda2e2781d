/** A simulated process: what it owns ends with it, and its events never run again. */
import type { Disk } from './disk.js';
import type { Owner } from './events.js';
import type { Network } from './network.js';

/** A machine: its clock and its disk outlive its processes. */
export class Host {
  /** By how much its clock is ahead of virtual time. */
  clockAheadMs = 0;

  constructor(
    /** An IP address. */
    readonly address: string,
    readonly disk: Disk,
  ) {}
}

export class Process implements Owner {
  alive = true;
  /** Its events wait until then. */
  stoppedUntil = 0;
  /** Open files, by descriptor. */
  readonly files = new Set<number>();
  /** Open sockets. */
  readonly sockets = new Set<{ readonly writableLength: number; readonly remoteAddress: string | undefined }>();

  constructor(
    readonly name: string,
    readonly host: Host,
    private readonly network: Network,
  ) {}

  /** SIGSTOP, and SIGCONT then: a stop within another one does not shorten it. */
  stopUntil(at: number): void {
    this.stoppedUntil = Math.max(this.stoppedUntil, at);
  }

  /** SIGKILL: all that is in memory is lost; its connections are closed by the system. */
  kill(): void {
    this.alive = false;
    for (const file of this.files) this.host.disk.close(file);
    this.network.abandon(this);
    this.network.events.forget(this);
  }
}
