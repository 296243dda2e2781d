/** What happens in a shard that other parts act on. Listeners are called at once, in the order in which they came. */
import { EventEmitter } from 'node:events';
import type { Side } from '../route/stage.js';
import type { Suspect } from '../suspects/suspects.js';
import type { Latest } from '../telemetry/series.js';
import type { Server, ServerEvents } from '../upstream/server.js';

export interface ShardEvents {
  /** A key is suspect (again). */
  suspect: [suspect: Suspect];
  /** The journal's files take turns: what is suspect now is to be noted again. */
  carry: [];
  /** A lost connection is seen to be closed at its server. */
  connectionClosed: [];
  /** The mirror of that side is connected, or disconnected. */
  mirror: [side: Side, up: boolean];
  /** The mirror of that side does not let effects into a database (`why`), or does again (null). */
  database: [side: Side, db: number, why: string | null];
  /** Repairs are allowed again. */
  unfrozen: [];
  /** A workload is in another stage. */
  moved: [];
  /** An authority is not trusted from now on. No command has been sent to it yet. */
  distrusted: [side: Side];
  /** An authority is down; again at each look, until it answers or is needed no more. */
  down: [side: Side];
  /** How fast both servers answered since the last sample: all commands, and those of each workload. */
  sampled: [latest: Latest, workloads: readonly Latest[]];
  /** As in `ServerEvents`. */
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

/** @param refusal why the server must not be used, by its run ID; null if it may */
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
