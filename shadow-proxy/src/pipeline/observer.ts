/** Watches single commands on their way, and changes nothing: traces. */
import type { Verdict } from '../compare/verdict.js';
import type { LaneEvents } from './lane.js';
import type { MirrorEvents } from './mirror-events.js';
import type { Carrier, Operation } from './operation.js';

export interface Observer {
  /** Submits the operation to the lane. */
  submit(operation: Operation, lane: Carrier): void;
  /** The events that lanes call instead of `events`; they pass each call on to `events`. */
  ofLanes(events: LaneEvents): LaneEvents;
  /** The events that a mirror calls instead of `events`; they pass each call on to `events`. */
  ofMirror(events: MirrorEvents): MirrorEvents;
  /** Replies that were not equal byte by byte have got a verdict. */
  concluded(operation: Operation, verdict: Verdict): void;
}
