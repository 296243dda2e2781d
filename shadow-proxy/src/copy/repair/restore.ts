/**
 * restore(key): what a restarted authority has lost is given back to it from its mirror, unless it was written
 * since.
 *
 *   reserved ─▶ nothing in flight ─▶ both servers asked at one place in the order ─▶ RESTORE PEXPIRE on the authority ─▶ free again
 *
 * Clients' commands on the key wait meanwhile, for two round trips. What the authority has again although it was
 * deleted is left as it is.
 */
import { monotonicMs } from '../../io/clock.js';
import { isOver } from '../../resp/key-life.js';
import { NOTHING, Operation, questions } from '../../pipeline/operation.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import { DatabaseRefused } from '../../upstream/handshake.js';
import type { Lane } from '../../pipeline/lane.js';
import { Scalars } from '../../resp/scalars.js';
import { CommandWriter } from '../../resp/command-writer.js';
import { CopyError } from '../key/copier.js';
import type { CopiedKey, KeyDump } from '../key/key-dump.js';
import { appendCopy, refusalOf, type PendingCopy } from '../key/copy-commands.js';
import type { WritesSinceRestart } from './writes-since-restart.js';
import { Verification, type Difference } from '../verify/verifier.js';

/**
 * - `restored`: the authority has what the mirror has.
 * - `equal`: it had, or what it has is not known to be wrong.
 * - `written`: it was written since, or is not known to be right on the mirror.
 * - `busy`: a command waits for it, or has reserved it.
 */
export type Restored = 'restored' | 'equal' | 'written' | 'busy';

/** @throws {CopyError} if a server refuses, or a connection is lost */
export async function restoreKey(
  sequencer: Sequencer,
  since: WritesSinceRestart,
  restored: CopiedKey,
): Promise<Restored> {
  const { db, key, workload } = restored;
  const lanes = sequencer.lanes[workload.position.rule(key, 0, key.length).authority];
  const locks = lanes.locks(db);
  const name = key.toString('latin1');
  const untouched = (): boolean => since.isUntouched(db, key, workload);
  if (!untouched()) return 'written';
  if (locks.wokenBy([name]).size > 0 || !locks.admits(null, [name], true)) return 'busy';
  const reservation = locks.reserve([name]);
  try {
    const lane = await lanes
      .open({ db, protocol: 2, credentials: lanes.server.endpoint.credentials })
      .catch((problem: Error) => {
        throw new CopyError(problem instanceof DatabaseRefused ? 'authority' : 'lost', problem.message);
      });
    await lanes.emptied(db);
    if (!untouched()) return 'written';
    const difference = await differenceAt(sequencer, lane, restored);
    if (!difference?.sure || difference.mirror.payload === null || isOver(difference.mirror.life)) return 'equal';
    await give(sequencer, lane, restored, difference.mirror);
    return untouched() ? 'restored' : 'written';
  } finally {
    locks.releaseReservation(reservation);
  }
}

function differenceAt(sequencer: Sequencer, lane: Lane, key: CopiedKey): Promise<Difference | null> {
  return new Promise((resolve, reject) => {
    new Verification(sequencer, lane, [key], {
      answered: () => undefined,
      verified: (_key, difference) => resolve(difference),
      failed: (_key, error) => reject(error),
    }).start();
  });
}

function give(sequencer: Sequencer, lane: Lane, restored: CopiedKey, dump: KeyDump): Promise<void> {
  const { db, key, workload } = restored;
  return new Promise((resolve, reject) => {
    const writer = new CommandWriter();
    let commands: PendingCopy<CopiedKey>;
    try {
      commands = appendCopy(restored, dump, writer, lane.server.traits);
    } catch (problem) {
      return reject(new CopyError('payload', (problem as Error).message));
    }
    const frame = writer.finish();
    const asked = monotonicMs();
    const sink: Operation['sink'] = {
      lost: () => reject(new CopyError('lost', 'the connection to the authority was lost')),
      answered: (_operation, buffer, start) => {
        const refusal = refusalOf(commands, new Scalars(buffer, start));
        if (refusal !== null) return reject(new CopyError('authority', `the authority refused: ${refusal}`));
        sequencer.expiry.copied(db, key, dump.life, asked, monotonicMs());
        resolve();
      },
    };
    // Nothing follows on the mirror, from which it comes.
    const operation = new Operation(frame, 0, frame.length, sink, undefined, workload, db, 2, NOTHING);
    operation.bundle = questions(commands.commands);
    sequencer.submit(operation, lane);
  });
}
