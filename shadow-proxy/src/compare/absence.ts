/**
 * Differences that come from a key that one side has no more: it expired there a moment earlier, or was evicted.
 * The frames alone do not decide; what both servers say about the key afterwards is judged here.
 */
import { decodeReply, isError, text, type Reply } from '../resp/decode.js';
import { expiresWithin, type KeyLife } from '../resp/key-life.js';
import { isRead, keysMissing, readsSeveralKeys, type Side } from './missing.js';
import { isOfTheServer } from './rules.js';
import type { CommandView, Verdict } from './verdict.js';
import { isAboutKey, isCondition } from './wording.js';

/** Commands that are about no key that could be missing, or about all of them. */
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
 * Which evidence could still allow a difference; null for a verdict that stands. A read's reply shows the absence of
 * its key (or, where it reads several, may be about any of them); any differing reply to a write may come from it.
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
  // One server finds a key of the wrong type where the other finds none, and goes on with the rest.
  const complains = [a, m].some((reply) => isError(reply) && !isAboutKey(text(reply), command));
  return readsSeveralKeys(command) && !complains ? 'absence' : null;
}

const isConditionError = (reply: Reply): boolean => isError(reply) && isCondition(text(reply));

/** What both servers said about one key, at one place in its order, after its replies had differed. */
export interface Evidence {
  /** Null when it could not be asked. */
  readonly authorityLife: KeyLife | null;
  readonly mirrorLife: KeyLife | null;
  /** Whether `evicted_keys` rose since the last time that it was known that nothing was missing. */
  readonly authorityEvicted: boolean;
  readonly mirrorEvicted: boolean;
  /** Whether another write to the key was ordered between the command and the questions. */
  readonly writtenSince: boolean;
  /** How long before its expiry a key may already have expired on the other side, in ms. */
  readonly toleranceMs: number;
  /** How long after the replies the questions were answered, in ms; 0 when absent. */
  readonly elapsedMs?: number;
  /**
   * True for a command that only read: the side that lacked the key then still lacks it, unless it was written since.
   * False for one that wrote: a key that is missing by now may be so by its own doing. Absent where neither is known.
   */
  readonly readOnly?: boolean;
}

/**
 * The verdict once the evidence for one key is in: `expiry-edge` only if the side that had the key was about to lose
 * it, `evicted` only if the side that lacks it evicts. Where the evidence proves nothing either way, inconclusive.
 */
export function judgeAbsence(verdict: Verdict, evidence: Evidence): Verdict {
  if (verdict.kind !== 'mismatch') return verdict;
  const lacking = lackingSides(verdict.what);
  // Of a reply that does not show who lacked the key, an edge on either side is proof; an eviction is one on both.
  const isEdge = lacking.some((side) => maybeLacked(evidence, side) && hadLittleLeft(evidence, other(side)));
  if (isEdge) return { kind: 'allowed', rule: 'expiry-edge' };
  const isEviction = lacking.every((side) => maybeLacked(evidence, side) && evicted(evidence, side));
  if (isEviction) return { kind: 'allowed', rule: 'evicted' };
  if (evidence.writtenSince) return { kind: 'inconclusive', reason: 'written-since' };
  const inconclusive = lacking.map((side) => whyInconclusive(evidence, side)).find((reason) => reason !== null);
  return inconclusive === undefined ? verdict : { kind: 'inconclusive', reason: inconclusive! };
}

/**
 * The verdict on MOVE or COPY, read as one on the key that it was to write. Where the side that did nothing still has
 * the key that was to be taken, another key was in its way there: it is the side that did it which lacked that one.
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

/** Whether the key of the side that had it was surely within the tolerance of its expiry, or has since expired. */
function hadLittleLeft(evidence: Evidence, side: Side): boolean {
  const life = lifeOn(evidence, side);
  const elapsed = evidence.elapsedMs ?? 0;
  // After another write, the time to live is that write's.
  if (life === null || evidence.writtenSince) return false;
  // A write may have removed the key itself.
  if (life.state === 'absent')
    return evidence.readOnly !== false && elapsed <= evidence.toleranceMs && !evicted(evidence, side);
  return expiresWithin(life, evidence.toleranceMs - elapsed);
}

/** False where the key is there on the side that seemed to lack it, and nothing can have put it there. */
function maybeLacked(evidence: Evidence, side: Side): boolean {
  const life = lifeOn(evidence, side);
  return !evidence.readOnly || evidence.writtenSince || life === null || life.state === 'absent';
}

/**
 * Why the evidence is none: the side that had the key could not be asked, has lost it for another reason, or was asked
 * so late that less than the tolerance is left by now.
 */
function whyInconclusive(evidence: Evidence, lacking: Side): string | null {
  if (!maybeLacked(evidence, lacking)) return null;
  const had = other(lacking);
  const life = lifeOn(evidence, had);
  if (life === null) return 'no-evidence';
  if (life.state === 'absent') return evicted(evidence, had) ? 'evicted-since' : 'asked-too-late';
  return expiresWithin(life, evidence.toleranceMs) ? 'asked-too-late' : null;
}
