/**
 * KeyDB loses what SET … KEEPTTL writes to a key that has expired and is not removed yet: it acknowledges the write,
 * then drops the value. Any read of the key removes it. So where KeyDB is the authority, an EXISTS is sent before such
 * a command, on the same lane.
 */
import type { CommandSpec } from '../command/table.js';
import { argumentCount, argumentsOf } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';
import type { Workload } from '../route/router.js';
import type { Lane } from './lane.js';
import { IGNORED, NOTHING, Operation } from './operation.js';
import type { Sequencer } from './sequencer.js';

/**
 * Makes KeyDB remove expired keys before the command at `start` of the frame, if that command may keep a time to live.
 * Sent on the same lane, right before it.
 */
export function removeExpired(
  sequencer: Sequencer,
  lane: Lane,
  spec: CommandSpec,
  workload: Workload,
  frame: Buffer,
  start: number,
): void {
  const { keepsTtlBlindly, handling } = spec;
  if (!lane.server.traits.isKeydb || (keepsTtlBlindly === null && handling !== 'script')) return;
  // SET key value has no options.
  if (keepsTtlBlindly !== null && argumentCount(frame, start) <= 3) return;
  const args = argumentsOf(frame, start);
  const mayKeepTtl =
    keepsTtlBlindly === null ? sequencer.scripts.find(args)?.mayKeepTtl(args) !== false : keepsTtlBlindly(args);
  if (!mayKeepTtl) return;
  const keys = sequencer.keys.ids(frame, start).map((key) => Buffer.from(key, 'latin1'));
  if (keys.length === 0) return;
  const exists = encodeCommand(['EXISTS', ...keys]);
  const { db, protocol } = lane.identity;
  sequencer.submit(new Operation(exists, 0, exists.length, IGNORED, undefined, workload, db, protocol, NOTHING), lane);
}
