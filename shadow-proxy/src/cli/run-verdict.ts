/** The verdict of a run, in one word with its reasons: a pure decision from the last snapshot. */
import { SIDES } from '../route/stage.js';
import { evictionNote } from '../telemetry/server-notes.js';
import { count, list } from '../text/figures.js';
import { sum, type ShardSnapshot } from '../telemetry/snapshot.js';
import { exitCode } from './exit.js';

export type Outcome = 'holds' | 'does not hold' | 'inconclusive';

export interface RunVerdict {
  readonly outcome: Outcome;
  /** The reasons for the outcome; never empty. */
  readonly reasons: readonly string[];
  /** Facts that did not change the outcome, and that the operator should know. */
  readonly notes: readonly string[];
  readonly exitCode: number;
}

/** Inconclusive pairs as a share of all: above this, the run is inconclusive. */
export const MAX_INCONCLUSIVE_SHARE = 0.001;

/**
 * A mismatch decides. Otherwise everything that should have been compared must have been; else the run is inconclusive.
 * @param drained whether everything in flight was answered, and confirmed by the mirror, before the snapshot
 */
export function judge(snapshot: ShardSnapshot, drained: boolean): RunVerdict {
  const notes = notesOf(snapshot);
  const against = contradictions(snapshot);
  if (against.length > 0) return { outcome: 'does not hold', reasons: against, notes, exitCode: exitCode.fails };
  const open = gaps(snapshot, drained);
  if (open.length > 0) return { outcome: 'inconclusive', reasons: open, notes, exitCode: exitCode.inconclusive };
  const reasons = [`${count(snapshot.compared, 'pair')} of replies compared, no mismatch`];
  return { outcome: 'holds', reasons, notes, exitCode: exitCode.holds };
}

function contradictions({ mismatches, frozen }: ShardSnapshot): string[] {
  const found: string[] = [];
  if (sum(mismatches) > 0) found.push(`${count(sum(mismatches), 'mismatch', 'mismatches')}: ${list(mismatches)}`);
  if (frozen !== null) found.push(`repairs are frozen: ${frozen}`);
  return found;
}

function gaps(snapshot: ShardSnapshot, drained: boolean): string[] {
  const { operations, compared, inconclusive, mirror, suspects, unsupported, workloads } = snapshot;
  const open = sum(inconclusive);
  const whole = workloads.filter((workload) => !workload.clean && workload.suspects === 0);
  const why = whole.map(({ name, suspect }) => (suspect === null ? name : `${name} (${suspect})`));
  const checks: [boolean, string][] = [
    [operations === 0, 'no client sent a command: point a client at the proxy'],
    [operations > 0 && compared === 0, 'nothing was compared: only stages that write to both servers compare replies'],
    [!mirror.connected, 'the mirror is disconnected'],
    [mirror.dropped > 0, `${count(mirror.dropped, 'effect')} did not reach the mirror`],
    [!drained, 'some writes were not confirmed by the mirror in time'],
    [suspects.total > 0, `${count(suspects.total, 'suspect key')}: ${list(suspects.byReason)}`],
    [drained && suspects.total === 0 && whole.length > 0, `the mirror is not verified for ${why.join(', ')}`],
    [
      open > MAX_INCONCLUSIVE_SHARE * (compared + open),
      `${count(open, 'pair')} of replies inconclusive: ${list(inconclusive)}`,
    ],
    [sum(unsupported) > 0, `${count(sum(unsupported), 'command')} that only one server supports: ${list(unsupported)}`],
  ];
  return checks.filter(([applies]) => applies).map(([, reason]) => reason);
}

function notesOf({ inconclusive, compared, crossWorkload, unmirroredErrors, ...servers }: ShardSnapshot): string[] {
  const open = sum(inconclusive);
  const notes: [boolean, string][] = [
    [
      open > 0 && open <= MAX_INCONCLUSIVE_SHARE * (compared + open),
      `${count(open, 'pair')} of replies inconclusive: ${list(inconclusive)}`,
    ],
    [crossWorkload.split > 0, `${count(crossWorkload.split, 'command')} across several workloads split`],
    [
      crossWorkload.refused > 0,
      `${count(crossWorkload.refused, 'command')} across several workloads refused: put their keys into one workload`,
    ],
    [unmirroredErrors > 0, `${count(unmirroredErrors, 'command')} refused by the authority, and so not replicated`],
    ...SIDES.map((side): [boolean, string] => [
      servers[side].evicted > 0,
      evictionNote(side, servers[side], Date.now()),
    ]),
  ];
  return notes.filter(([applies]) => applies).map(([, note]) => note);
}
