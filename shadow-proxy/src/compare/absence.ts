/**
 * Differences whose cause is a key that one side no longer has: it expired there a moment earlier, or was evicted. The
 * frames alone do not decide. This file judges what both servers say about the key afterwards.
 */
import { decodeReply, isError, text, type Reply } from '../resp/decode.js';
import { expiresWithin, type KeyLife } from '../resp/key-life.js';
import { isRead, keysMissing, readsSeveralKeys, type Side } from './missing.js';
import { isOfTheServer } from './rules.js';
import type { CommandView, Verdict } from './verdict.js';
import { isAboutKey, isCondition } from './wording.js';

/** Commands without a key that could be missing, or on all keys. */
const KEYLESS = new Set([
  '',
  'ping',
  'echo',
  'select',
  'auth',
  'quit',
  'reset',
  'exec',
  'multi',
  'discard',
  'dbsize',
  'keys',
  'scan',
  'randomkey',
  'flushdb',
  'flushall',
  'swapdb',
]);

/**
 * The evidence that could still make a difference an allowed one; null if the verdict is final. A read's reply shows
 * whether its key exists (with several keys, any of them may be missing). Any difference in the reply to a write may
 * come from a missing key.
 */
export function needsEvidence(
  verdict: Verdict,
  command: CommandView,
  authority: Buffer,
  mirror: Buffer,
): 'absence' | null {
  if (verdict.kind !== 'mismatch' || verdict.what === 'unsupported') return null;
  if (
    KEYLESS.has(command.name) ||
    isOfTheServer(command.name) ||
    command.name.startsWith('script|') ||
    command.name.startsWith('function|')
  )
    return null;
  const [a, m] = [decodeReply(authority).reply, decodeReply(mirror).reply];
  if (isConditionError(a) || isConditionError(m)) return null;
  if (!isRead(command)) return 'absence';
  if (verdict.what === 'missing-on-mirror' || verdict.what === 'missing-on-authority') return 'absence';
  if (command.name === 'mget') return keysMissing(a, m) === null ? null : 'absence';
  // One server finds a key of the wrong type where the other finds none and continues with the next.
  const complains = [a, m].some((reply) => isError(reply) && !isAboutKey(text(reply), command));
  return readsSeveralKeys(command) && !complains ? 'absence' : null;
}

const isConditionError = (reply: Reply): boolean => isError(reply) && isCondition(text(reply));

/** What both servers said about one key after its replies had differed, at one place in the order. */
export interface Evidence {
  /** Null if the server could not be asked. */
  readonly authorityLife: KeyLife | null;
  readonly mirrorLife: KeyLife | null;
  /** Whether `evicted_keys` rose since it was last known that no key was missing. */
  readonly authorityEvicted: boolean;
  readonly mirrorEvicted: boolean;
  /** Whether another write to the key was ordered between the command and the questions. */
  readonly writtenSince: boolean;
  /** How long before its expiry a key may already have expired on the other side, in ms. */
  readonly toleranceMs: number;
  /** How long after the replies the questions were answered, in ms; absent means 0. */
  readonly elapsedMs?: number;
  /**
   * True for a read: the side that lacked the key still lacks it, unless the key was written since. False for a write,
   * which may itself have removed a key that is missing now. Absent if neither is known.
   */
  readonly readOnly?: boolean;
}

/**
 * The verdict with the evidence for one key. `expiry-edge` only if the side that had the key was about to lose it;
 * `evicted` only if the side that lacks the key evicts. If the evidence proves neither, inconclusive.
 */
export function judgeAbsence(verdict: Verdict, evidence: Evidence): Verdict {
  if (verdict.kind !== 'mismatch') return verdict;
  const lacking = lackingSides(verdict.what);
  // If the reply does not show who lacked the key, an expiry on either side is proof. An eviction is proof only on
  // both.
  const isEdge = lacking.some((side) => maybeLacked(evidence, side) && hadLittleLeft(evidence, other(side)));
  if (isEdge) return { kind: 'allowed', rule: 'expiry-edge' };
  const isEviction = lacking.every((side) => maybeLacked(evidence, side) && evicted(evidence, side));
  if (isEviction) return { kind: 'allowed', rule: 'evicted' };
  if (evidence.writtenSince) return { kind: 'inconclusive', reason: 'written-since' };
  const inconclusive = lacking.map((side) => whyInconclusive(evidence, side)).find((reason) => reason !== null);
  return inconclusive === undefined ? verdict : { kind: 'inconclusive', reason: inconclusive! };
}

/**
 * The verdict on MOVE or COPY, as one on the key that the command was to write. If the side that did nothing still has
 * the key to take, another key was in the way there: the side that ran the command lacked that other key.
 */
export function readAtDestination(verdict: Verdict, taken: Pick<Evidence, 'authorityLife' | 'mirrorLife'>): Verdict {
  if (verdict.kind !== 'mismatch') return verdict;
  const [idle, ...more] = lackingSides(verdict.what);
  const life = idle === 'mirror' ? taken.mirrorLife : taken.authorityLife;
  if (more.length > 0 || life === null || life.state === 'absent') return verdict;
  return { ...verdict, what: idle === 'mirror' ? 'missing-on-authority' : 'missing-on-mirror' };
}

function lackingSides(what: string): readonly Side[] {
  return what === 'missing-on-mirror'
    ? ['mirror']
    : what === 'missing-on-authority'
      ? ['authority']
      : ['authority', 'mirror'];
}

const other = (side: Side): Side => (side === 'mirror' ? 'authority' : 'mirror');
const lifeOn = (evidence: Evidence, side: Side): KeyLife | null =>
  side === 'mirror' ? evidence.mirrorLife : evidence.authorityLife;
const evicted = (evidence: Evidence, side: Side): boolean =>
  side === 'mirror' ? evidence.mirrorEvicted : evidence.authorityEvicted;

/**
 * Whether the key of the side that had it was certainly about to expire, within the tolerance, or has expired since.
 */
function hadLittleLeft(evidence: Evidence, side: Side): boolean {
  const life = lifeOn(evidence, side);
  const elapsed = evidence.elapsedMs ?? 0;
  // After another write, the time to live is the later write's.
  if (life === null || evidence.writtenSince) return false;
  // A write may itself have removed the key.
  if (life.state === 'absent')
    return evidence.readOnly !== false && elapsed <= evidence.toleranceMs && !evicted(evidence, side);
  return expiresWithin(life, evidence.toleranceMs - elapsed);
}

/** False if the key exists on the side that seemed to lack it, and nothing can have written it there. */
function maybeLacked(evidence: Evidence, side: Side): boolean {
  const life = lifeOn(evidence, side);
  return !evidence.readOnly || evidence.writtenSince || life === null || life.state === 'absent';
}

/**
 * Why the evidence proves nothing: the side that had the key could not be asked, has lost the key for another reason,
 * or was asked so late that less than the tolerance is left by now.
 */
function whyInconclusive(evidence: Evidence, lacking: Side): string | null {
  if (!maybeLacked(evidence, lacking)) return null;
  const had = other(lacking);
  const life = lifeOn(evidence, had);
  if (life === null) return 'no-evidence';
  if (life.state === 'absent') return evicted(evidence, had) ? 'evicted-since' : 'asked-too-late';
  return expiresWithin(life, evidence.toleranceMs) ? 'asked-too-late' : null;
}
