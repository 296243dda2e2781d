/** Who looks at single commands on their way, and changes nothing: traces. */
import type { Verdict } from '../compare/verdict.js';
import type { LaneEvents } from './lane.js';
import type { MirrorEvents } from './mirror-events.js';
import type { Carrier, Operation } from './operation.js';

export interface Observer {
  /** Submits the operation to the lane. */
  submit(operation: Operation, lane: Carrier): void;
  /** What lanes are to call instead of `events`, which it calls. */
  ofLanes(events: LaneEvents): LaneEvents;
  /** What a mirror is to call instead of `events`, which it calls. */
  ofMirror(events: MirrorEvents): MirrorEvents;
  /** Replies that were not equal byte by byte have a verdict. */
  concluded(operation: Operation, verdict: Verdict): void;
}
