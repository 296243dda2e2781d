/**
 * Decides whether two replies to one command are the same, and if not, why.
 *
 *   compareReplies ──▶ match │ allowed(rule) │ inconclusive(reason) │ mismatch ──▶ needsEvidence ──▶ judgeAbsence
 *
 * Pure functions of the two frames: no clock, no sockets.
 *
 * Room: compare: two replies → a verdict; pure.
 * Called by: telemetry, pipeline, suspects, copy/repair, stages, otel, shard, docs, cli.
 * Calls: resp.
 */
import { decodeReply, isError, isNull, text, type Reply } from '../resp/decode.js';
import { FrameScanner } from '../resp/frame-scanner.js';
import { sharedPendingAgree } from './fields.js';
import { isRead, missingOn } from './missing.js';
import { firstDifference } from './redact.js';
import { RULES } from './rules.js';
import { integerOf, itemsOfBoth, sameElements, word } from './shape.js';
import { withScoresAlike } from './scores.js';
import {
  isWorse,
  type CommandView,
  type Difference,
  type MismatchKind,
  type Tolerances,
  type Verdict,
} from './verdict.js';
import { isAboutKey, isRefusal, isScript, lacksMemory, servesNotSlot, takesNoWrites } from './wording.js';

export type { CommandView, Mismatch, MismatchKind, RuleName, Tolerances, Verdict } from './verdict.js';
export { RULES } from './rules.js';
export { judgeAbsence, needsEvidence, readAtDestination, type Evidence } from './absence.js';

const MATCH: Verdict = { kind: 'match' };
const QUICK_RULES = RULES.filter((rule) => rule.allowsBytes !== undefined);

/**
 * Compares two replies to the same command, in the same protocol.
 * @param authority the authority's reply, one frame
 * @param mirror the mirror's reply, one frame
 */
export function compareReplies(command: CommandView, authority: Buffer, mirror: Buffer, limits: Tolerances): Verdict {
  if (authority.equals(mirror)) return MATCH;
  if (command.name === 'exec' && command.inner !== undefined)
    return compareExec(command.inner, authority, mirror, limits).verdict;
  const quick = QUICK_RULES.find(
    (each) => each.appliesTo(command.name) && each.allowsBytes!(command, authority, mirror),
  );
  if (quick !== undefined) return { kind: 'allowed', rule: quick.name };
  const [a, m] = [authority, mirror].map((frame) => withScoresAlike(command, decodeReply(frame).reply));
  const difference: Difference = { command, authority: a, mirror: m, limits };
  const rule = RULES.find((each) => each.appliesTo(command.name) && each.allows(difference));
  if (rule !== undefined) return { kind: 'allowed', rule: rule.name };
  const reason = undecidable(difference);
  if (reason !== null) return { kind: 'inconclusive', reason };
  return { kind: 'mismatch', what: mismatchKind(difference), offset: firstDifference(authority, mirror) };
}

/** The reason when the mirror refuses commands because its memory is full. */
export const MIRROR_FULL = 'mirror-full';
const MIRROR_READ_ONLY = 'mirror-read-only';
const SLOT_AWAY = 'mirror-slot-away';

/** The verdict on an effect that the mirror has refused, and that has no reply to compare. */
export function judgeRefusal(command: CommandView, mirror: Buffer): Verdict {
  const reason = unableTo(command, text(decodeReply(mirror).reply));
  return reason === null ? { kind: 'mismatch', what: 'error' } : { kind: 'inconclusive', reason };
}

/** Why the mirror cannot run the command at present, whatever its data; null if the error does not say so. */
function unableTo(command: CommandView, error: string): string | null {
  if (servesNotSlot(error, command)) return SLOT_AWAY;
  const cannotServe = MIRROR_STATES.get(error.split(' ', 1)[0]);
  if (cannotServe !== undefined) return cannotServe;
  if (lacksMemory(error, command)) return MIRROR_FULL;
  return takesNoWrites(error, command) ? MIRROR_READ_ONLY : null;
}

/** States in which a server refuses only writes. */
const OF_WRITES = new Set([MIRROR_FULL, MIRROR_READ_ONLY]);

/** The states in which a mirror refuses a command before it reads a key, by the code of its error. */
const MIRROR_STATES = new Map([
  ['LOADING', 'mirror-loading'],
  ['BUSY', 'mirror-busy'],
  ['MASTERDOWN', 'mirror-without-master'],
  ['MISCONF', 'mirror-cannot-save'],
  ['NOREPLICAS', 'mirror-lacks-replicas'],
  ['NOSCRIPT', 'mirror-lacks-script'],
]);

/** Why the replies do not show whether the data differ; null if they can show it. */
function undecidable({ command, authority, mirror }: Difference): string | null {
  const { name, args } = command;
  if (isError(mirror)) {
    // The mirror did not read the key, so an error of the authority may still be right.
    const unable = unableTo(command, text(mirror));
    if (unable !== null && (!isRead(command) || !OF_WRITES.has(unable))) return unable;
    // The refused command in the transaction has its own verdict.
    if (name === 'exec' && !isError(authority) && text(mirror).startsWith('EXECABORT ')) return 'transaction-refused';
  }
  // DBSIZE counts keys that have expired and are not removed yet.
  if (name === 'dbsize' && integerOf(authority) !== null && integerOf(mirror) !== null) return 'dbsize-counts-expired';
  const items = itemsOfBoth(authority, mirror);
  if (items === null) return null;
  // An entry that has just reached the idle time may be in one reply only.
  if (name === 'xpending') return word(args[3]) === 'IDLE' && sharedPendingAgree(...items) ? 'idle-filter' : null;
  if (name === 'sort' || name === 'sort_ro') {
    // Without an order, or with ties, a set has no fixed order (a list has). LIMIT cuts such a result anywhere.
    const by = args.findIndex((arg, i) => i > 1 && word(arg) === 'BY');
    const limited = args.some((arg, i) => i > 1 && word(arg) === 'LIMIT');
    const sorts = by !== -1 && args[by + 1]?.includes('*') && !args.some((arg, i) => i > 1 && word(arg) === 'ALPHA');
    if (by === -1 || sorts || items[0].length !== items[1].length) return null;
    return limited || sameElements(...items, 1) ? 'sort-without-order' : null;
  }
  // A script may return the members of a set in the server's order, or a list.
  return isScript(command) && sameElements(...items, 1) ? 'script-order' : null;
}

function mismatchKind({ command, authority, mirror }: Difference): MismatchKind {
  const [a, m] = [isError(authority), isError(mirror)];
  if (refused(authority) !== refused(mirror)) return 'unsupported';
  const missing = missingOn(command, authority, mirror);
  if (missing !== null && !isComplaint(missing === 'mirror' ? authority : mirror, command))
    return `missing-on-${missing}`;
  if (a || m) return 'error';
  if (authority.type !== mirror.type || isNull(authority) !== isNull(mirror)) return 'type';
  const items = itemsOfBoth(authority, mirror);
  if (items === null) return 'value';
  // Fields that only one server has change the length; they are not the difference.
  if (command.name.startsWith('xinfo|')) return 'value';
  if (items[0].length !== items[1].length) return 'length';
  return sameElements(...items, 1) ? 'order' : 'value';
}

/**
 * Whether the reply is an error that does not depend on the value of the key, so that a missing key may get it as well.
 */
const isComplaint = (reply: Reply, command: CommandView): boolean =>
  isError(reply) && !isAboutKey(text(reply), command);
const refused = (reply: Reply): boolean => isError(reply) && isRefusal(text(reply));

/** The verdict on one command of a transaction. */
export interface ExecFinding {
  readonly verdict: Verdict;
  /** The index of the command; null if the replies differ as a whole. */
  readonly index: number | null;
  /** The two replies that were judged: those to the command, or the whole ones. */
  readonly authority: Buffer;
  readonly mirror: Buffer;
}

/** The worst finding about two replies to EXEC, whose commands are judged one by one; the first among equals. */
export function compareExec(
  commands: readonly CommandView[],
  authority: Buffer,
  mirror: Buffer,
  limits: Tolerances,
): ExecFinding {
  let worst: ExecFinding = { verdict: MATCH, index: null, authority, mirror };
  for (const finding of compareEachOfExec(commands, authority, mirror, limits)) {
    if (isWorse(finding.verdict, worst.verdict)) worst = finding;
  }
  return worst;
}

/** All findings about two replies to EXEC: one for each command whose replies are not equal. */
export function compareEachOfExec(
  commands: readonly CommandView[],
  authority: Buffer,
  mirror: Buffer,
  limits: Tolerances,
): ExecFinding[] {
  if (authority.equals(mirror)) return [];
  const [as, ms] = [elementsOf(authority), elementsOf(mirror)];
  if (as === null || ms === null || as.length !== ms.length) {
    const verdict = compareReplies({ name: 'exec', args: [] }, authority, mirror, limits);
    return [{ verdict, index: null, authority, mirror }];
  }
  return as.flatMap((element, index) => {
    const command = commands[index] ?? { name: '', args: [] };
    const verdict = compareReplies(command, element, ms[index], limits);
    return verdict.kind === 'match' ? [] : [{ verdict, index, authority: element, mirror: ms[index] }];
  });
}

const [STAR, MINUS] = [42, 45];

/** The frames of the elements; null if the reply is no array. */
function elementsOf(frame: Buffer): Buffer[] | null {
  if (frame[0] !== STAR || frame[1] === MINUS) return null;
  const scanner = new FrameScanner();
  const elements: Buffer[] = [];
  for (let at = frame.indexOf('\r\n') + 2; at < frame.length;) {
    const end = scanner.scan(frame, at, frame.length);
    elements.push(frame.subarray(at, end));
    at = end;
  }
  return elements;
}
