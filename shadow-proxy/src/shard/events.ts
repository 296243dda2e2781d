/** Events of a shard that its parts react to. Listeners are called at once, in the order in which they were added. */
import { EventEmitter } from 'node:events';
import type { Side } from '../route/stage.js';
import type { Suspect } from '../suspects/suspects.js';
import type { Latest } from '../telemetry/series.js';
import type { Server, ServerEvents } from '../upstream/server.js';

export interface ShardEvents {
  /** A key has become suspect, or suspect again. */
  suspect: [suspect: Suspect];
  /** A key is no longer suspect. */
  suspectCleared: [suspect: Suspect];
  /** The journal's files are rotated: present suspects must be recorded again. */
  carry: [];
  /** The server no longer lists a lost connection. */
  connectionClosed: [];
  /** The mirror on this side was connected or disconnected. */
  mirror: [side: Side, up: boolean];
  /** The mirror on this side refuses effects in a database (`why`), or accepts them again (null). */
  database: [side: Side, db: number, why: string | null];
  /** Repairs are allowed again. */
  unfrozen: [];
  /** A workload has changed its stage. */
  moved: [];
  /** An authority is no longer trusted. No command has been sent to it yet. */
  distrusted: [side: Side];
  /** An authority is down; repeated at each check, until it answers or is no longer needed. */
  down: [side: Side];
  /** Latencies of both servers since the last sample: of all commands, and of each workload. */
  sampled: [latest: Latest, workloads: readonly Latest[]];
  /** The same event as in `ServerEvents`. */
  identified: [server: Server];
  replaced: [server: Server, change: string];
  demoted: [server: Server];
  usable: [server: Server];
  clockRead: [];
  clockSet: [server: Server, byMs: number];
  passwordNeeded: [server: Server];
  full: [server: Server];
}

export class Events extends EventEmitter<ShardEvents> {}

/** @param refusal why the server with this run ID must not be used; null if it may */
export const serverEvents = (events: Events, refusal: ServerEvents['refusal']): ServerEvents => ({
  refusal,
  identified: (server) => void events.emit('identified', server),
  replaced: (server, change) => void events.emit('replaced', server, change),
  demoted: (server) => void events.emit('demoted', server),
  usable: (server) => void events.emit('usable', server),
  clockRead: () => void events.emit('clockRead'),
  clockSet: (server, byMs) => void events.emit('clockSet', server, byMs),
  passwordNeeded: (server) => void events.emit('passwordNeeded', server),
  full: (server) => void events.emit('full', server),
});
