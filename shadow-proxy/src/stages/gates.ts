/**
 * Gates: the conditions that must be met before a workload moves to its next stage. Pure decisions from facts. If a
 * fact is unknown, the gate is closed, too.
 */
import type { Gates } from '../plan/plan.js';
import { allowedForms } from '../command/forms.js';
import type { UnsupportedForm, WorkloadEvidence } from '../storage/evidence.js';
import { NOT_COPIED, sum } from '../telemetry/snapshot.js';
import type { Stage, StagePoint } from '../route/stage.js';
import { nextShare, SHARES, transitionOf, type GateName } from '../route/transitions.js';
import { number } from '../text/figures.js';
import { ACCEPT, backfillOf, drillOf, verifyOf } from '../telemetry/advice.js';
import { says, soonOpen, unknown, type GateAnswer } from './gate-answer.js';
import { judgeChecks } from './external-checks.js';
import type { Consent, GateFacts, TargetFacts } from './gate-facts.js';
import { judgeFence } from './fence-gate.js';
import { judgeLatency } from './latency-gate.js';
import { judgeSettings, settingsShown } from './settings-gate.js';
import { judgeUsers } from './users-gate.js';
import { untilCompared, untilMinutes, type TimeLeft } from './pace.js';

export interface Gate extends GateAnswer {
  readonly name: GateName;
}

/** The gates of the transition between these stages. @throws {Error} if there is none */
export function gatesFor(from: Stage, to: Stage): readonly GateName[] {
  const transition = transitionOf(from, to) ?? transitionOf(from, to, true);
  if (transition === null) throw new Error(`no transition from ${from} to ${to}`);
  return transition.gates;
}

/** The gates of the step, each with its answer at time `now`. */
export function judgeGates(facts: GateFacts, from: StagePoint, to: StagePoint, now: Date): Gate[] {
  const gates = gatesFor(from.stage, to.stage)
    .filter((name) => (name !== 'checks' || facts.checks !== null) && (name !== 'fence' || facts.fence !== null))
    .map((name) => ({ name, ...JUDGES[name](facts, now, from, to) }));
  const before = closedGates(gates).filter(({ name }) => DRILL_NEEDS.has(name));
  return before.length === 0 ? gates : gates.map((gate) => (gate.name === 'drill' ? later(gate, before) : gate));
}

/** A drill is refused unless these gates are open: clients could get wrong replies, even if only briefly. */
export const DRILL_NEEDS: ReadonlySet<GateName> = new Set([
  'servers',
  'users',
  'suspects',
  'mismatches',
  'verify',
  'counters',
  'unsupported',
  'bypass',
]);

/** A drill is suggested only when it is possible. */
const later = ({ command, ...gate }: Gate, before: readonly Gate[]): Gate =>
  command === undefined
    ? gate
    : { ...gate, evidence: `${gate.evidence}; open these gates first: ${before.map(({ name }) => name).join(', ')}` };

/** Gates that `force` does not pass: the operator has to confirm their number instead. */
const NOT_FORCED: ReadonlySet<GateName> = new Set(['target']);

/** Closed gates that an operator passes. */
export interface ForcedGates {
  /** All gates except `target` and `users`. */
  readonly force?: boolean;
  /** The gate `suspects`: writes that the mirror lacks are lost. */
  readonly forceSuspects?: boolean;
  /** The gate `users`: clients may be locked out, or may get rights that they should not have. */
  readonly forceUsers?: boolean;
}

/** The closed gates that keep the workload in its stage. */
export const closedGates = (
  gates: readonly Gate[],
  { force = false, forceSuspects = false, forceUsers = false }: ForcedGates = {},
): Gate[] =>
  gates.filter(({ name, answer }) => {
    if (answer === 'yes') return false;
    if (name === 'users') return !forceUsers;
    if (name === 'suspects' && forceSuspects) return false;
    return !force || NOT_FORCED.has(name);
  });

export const isOpen = (gates: readonly Gate[]): boolean => gates.every(({ answer }) => answer === 'yes');

const HOUR_MS = 3_600_000;
/** Whether a workload may be written to the target for the first time. */
export function judgeTarget(facts: TargetFacts | null, consent: Consent): GateAnswer {
  if (facts === null) return unknown('the keys of the target were not counted');
  const { ownSince, keys, of, problem } = facts;
  if (of === null || problem !== null)
    return unknown(`the keys of the target cannot be counted: ${problem ?? 'the target does not answer'}`);
  if (of === 0) return says(true, 'the target is empty');
  if (ownSince !== null)
    return says(true, `this shard wrote all keys of this workload on the target, since ${ownSince}`);
  if (keys === null)
    return unknown(`the target holds ${number(of)} keys; promote and promote --dry-run count those of this workload`);
  const looked = `${number(keys.looked)} of ${number(keys.of)} keys of the target checked`;
  if (keys.found === 0)
    return keys.complete
      ? says(true, `no key of this workload is on the target (${looked})`)
      : soonOpen(unknown(`still counting: ${looked}, no key of this workload yet; run the command again`));
  const foreign = keys.found - keys.onSource;
  const found = `${keys.complete ? '' : 'at least '}${number(keys.found)} keys of this workload are on the target and were not written by this shard: ${number(keys.onSource)} are on the source, too, ${number(foreign)} are foreign keys (examples: ${keys.examples.join(', ')})`;
  if (!keys.complete) return says(false, `${found}; still counting: ${looked}; run the command again`);
  const { overwrite, deleteForeign, confirm } = consent;
  if (!overwrite && !deleteForeign) return says(false, `${found}. ${WAYS_ON}`);
  if (!overwrite && keys.onSource > 0)
    return says(
      false,
      `${found}. --delete-foreign does not apply to keys that are on the source, too: add --overwrite`,
    );
  if (confirm < keys.found)
    return says(
      false,
      `${found}. Confirm the number: --yes ${keys.found}${confirm > 0 ? ` (${number(confirm)} were confirmed)` : ''}`,
    );
  return says(
    true,
    `${found}; confirmed: ${overwrite ? 'overwrite the keys that are on the source' : 'no key is on the source'}, ${deleteForeign ? 'delete' : 'keep'} the foreign keys`,
  );
}

const WAYS_ON =
  'Choose one: another target; `owns` in the plan, if the keys belong to another shard; --overwrite: keep foreign keys until a client writes them; --delete-foreign: backfill deletes them. Both options ask you to confirm the number';

/** `needed` is a minimum, not a total: once it is reached, "N of M" would be misleading. */
const progress = (have: string, needed: string, unit: string, isReached: boolean): string =>
  isReached ? `${have} ${unit}, at least ${needed} needed` : `${have} of ${needed} ${unit}`;

const JUDGES: Readonly<
  Record<GateName, (facts: GateFacts, now: Date, from: StagePoint, to: StagePoint) => GateAnswer>
> = {
  servers: ({ servers, newer, settings, gates: { acceptSettings } }) => {
    if (servers === null || settings === null) return soonOpen(unknown('the servers were not checked yet'));
    if (servers.length > 0) return says(false, servers.join('; '));
    const unknownReleases = newer.filter(({ accepted }) => !accepted);
    if (unknownReleases.length > 0)
      return says(
        false,
        `${unknownReleases.map(({ evidence }) => evidence).join('; ')}. Take a newer release of the kit; or, after a rehearsal with such a server, promote with --accept-version and a --reason`,
      );
    return (
      judgeSettings(settings, acceptSettings) ??
      says(
        true,
        [
          'two different servers, both masters; the target accepts writes',
          ...newer.map(({ evidence }) => `accepted: ${evidence}`),
          ...settingsShown(settings),
        ].join('; '),
      )
    );
  },
  target: ({ target, consent }) => judgeTarget(target, consent),

  users: ({ users, refusedLogins, gates: { acceptRights } }) =>
    users === null
      ? soonOpen(unknown('the servers were not checked yet'))
      : judgeUsers(users, refusedLogins, acceptRights),

  compared: ({ evidence: { compared }, gates: { minCompared }, comparedPerSecond }) =>
    counts(
      minCompared - compared,
      progress(number(compared), number(minCompared), 'pairs of replies', compared >= minCompared),
      untilCompared(minCompared - compared, comparedPerSecond),
    ),

  time: ({ evidence: { minutes, hours, since }, gates: { minMinutes }, comparedPerSecond }, now) => {
    const passed = Math.floor((now.getTime() - Date.parse(since)) / 60_000);
    const day = `${hours.length} of 24 hours of the day seen`;
    return counts(
      minMinutes - minutes,
      `replies compared in ${progress(number(minutes), minMinutes < 1 ? String(minMinutes) : number(minMinutes), 'min', minutes >= minMinutes)} (${number(passed)} min in this stage, ${day})`,
      untilMinutes(minMinutes - minutes, comparedPerSecond),
    );
  },

  mismatches: ({ evidence: { mismatches }, gates: { maxMismatches } }) =>
    says(
      sum(mismatches) <= maxMismatches,
      `${number(sum(mismatches))}${listed(mismatches)}, at most ${number(maxMismatches)}`,
    ),

  allowed: ({ evidence: { compared, allowed }, gates: { maxAllowedShare } }) => {
    if (compared === 0) return soonOpen(unknown('nothing was compared'));
    const share = sum(allowed) / compared;
    return says(
      share <= maxAllowedShare,
      `${percent(share)} of the pairs${listed(allowed)}, at most ${percent(maxAllowedShare)}`,
    );
  },

  inconclusive: ({ evidence: { compared, inconclusive, inconclusiveByScript }, gates: { maxInconclusiveShare } }) => {
    const all = compared + inconclusive;
    if (all === 0) return soonOpen(unknown('nothing was compared'));
    const isOpen = inconclusive / all <= maxInconclusiveShare;
    const found = `${number(inconclusive)} inconclusive pairs (${percent(inconclusive / all)}), at most ${percent(maxInconclusiveShare)}`;
    return says(isOpen, isOpen ? found : [found, ...byScripts(inconclusiveByScript, inconclusive)].join('; '));
  },

  suspects: ({ workload: name, suspects, suspect, frozen, down }, _, { stage }) => {
    if (frozen !== null) return says(false, `repairs are frozen: ${frozen}`, ACCEPT);
    if (suspect !== null)
      return says(
        false,
        `every key is a suspect: ${suspect}`,
        suspect === NOT_COPIED ? backfillOf({ name, stage, frozen, down }) : undefined,
      );
    return soonOpen(says(suspects === 0, `${number(suspects)} suspect ${suspects === 1 ? 'key' : 'keys'}`));
  },

  verify: ({ workload: name, frozen, down, evidence: { verified }, gates: { maxVerifyHours } }, now, { stage }) => {
    const verify = (repair: boolean): string | undefined => verifyOf([{ name, stage, frozen, down }], repair);
    if (verified === null) return unknown('its keys were never verified', verify(false));
    if (verified.keys === 0)
      return unknown(`the verification of ${verified.endedAt} found no keys of this workload: nothing was compared`);
    const hours = (now.getTime() - Date.parse(verified.endedAt)) / HOUR_MS;
    const found = `${number(verified.keys)} keys ${hours.toFixed(1)} h ago (at most ${number(maxVerifyHours)} h), ${number(verified.differences)} differed, ${number(verified.failed + verified.unsure)} inconclusive`;
    const equal = verified.differences === 0;
    return says(hours <= maxVerifyHours && equal && verified.failed + verified.unsure === 0, found, verify(!equal));
  },

  latency: ({ latencies, gates: { maxP99Ratio, minCompared } }) => judgeLatency(latencies, maxP99Ratio, minCompared),

  unsupported: ({ evidence, gates }, now) => {
    const { blocking, old, allowed } = unsupportedForms(evidence, gates, now);
    const hours = `${number(gates.unsupportedHours)} h`;
    const found = (['target', 'source'] as const).flatMap((side) => {
      const forms = blocking.filter(({ lacks }) => lacks === side);
      return forms.length === 0
        ? []
        : [`the ${side} does not support ${forms.map((form) => seenForm(form, now)).join(', ')}`];
    });
    if (found.length > 0)
      found.push(
        `opens when clients have not used them for ${hours}, or when gates.allowUnsupported lists them with a reason`,
      );
    else found.push(`none in the last ${hours}`);
    if (old.length > 0) found.push(`before that: ${old.map((form) => seenForm(form, now)).join(', ')}`);
    if (allowed.length > 0)
      found.push(`allowed: ${allowed.map((form) => `${seenForm(form, now)}: ${form.reason}`).join('; ')}`);
    return says(blocking.length === 0, found.join('; '));
  },

  bypass: ({ workload: name, bypassing, passed, suspect, frozen, down, gates: { minMinutes } }, now, { stage }) => {
    const { since, last } = passed;
    const minutes = (at: string): number => Math.floor((now.getTime() - Date.parse(at)) / 60_000);
    // A later copy includes these writes: nothing is missed.
    const copied = stage !== 'off' && suspect !== NOT_COPIED;
    const wait = copied ? Math.max(1, minMinutes) : 1;
    if (last !== null && minutes(last.at) < wait) {
      const seen = `clients write to the source directly, bypassing the proxy: at least these writes${listed(last.writes)}, last seen ${number(minutes(last.at))} min ago; stop them, wait ${number(wait)} min`;
      return copied
        ? says(false, `${seen}, then repair what the target missed`, verifyOf([{ name, stage, frozen, down }], true))
        : says(false, `${seen}; the backfill copies what they wrote`);
    }
    if (bypassing === null) return unknown('the source does not list its clients: allow CLIENT LIST to the kit’s user');
    return says(
      bypassing.length === 0,
      bypassing.length === 0
        ? `no client is connected to the source directly${since === null ? '; call counts could not be compared (scripts run, the target answers clients, other shards have slots of the source, or the proxy has just started)' : `, and for ${number(minutes(since))} min the source counted only the writes of the proxy`}`
        : `connected to the source directly, bypassing the proxy: ${bypassing.slice(0, 5).join(', ')}${bypassing.length > 5 ? ` and ${bypassing.length - 5} more` : ''} (point them at the proxy, or list them in knownClients)`,
    );
  },

  counters: ({ counters, writtenIn }) => {
    // Copies here would be writes through a second node.
    if (writtenIn !== null)
      return says(
        false,
        `its only writer is ${writtenIn}: in this region it stays off; point its clients at the proxy of ${writtenIn}`,
      );
    if (counters === null) return unknown('the nodes of the target do not report their replication roles');
    if (counters === 'none') return says(true, 'the class is not a counter class, and no counter commands were seen');
    const { verdict, why, lost, todo } = counters;
    const evidence = [why, lost, todo].filter((each) => each !== null).join('; ');
    return verdict === 'unknown' ? unknown(evidence) : says(verdict === 'safe', evidence);
  },

  evictions: ({ evicted, sourceEvicted }) => {
    if (evicted === null) return unknown('the target does not report its evictions');
    const kept =
      sourceEvicted === 0
        ? ''
        : `; the source has evicted ${number(sourceEvicted)} keys since the proxy started, and the target still holds them: verify --repair deletes them there`;
    return says(evicted === 0, `the target has evicted ${number(evicted)} keys since it started${kept}`);
  },

  drill: ({ workload: name, down, evidence: { drill }, gates: { drill: needed } }, _, { stage }) => {
    if (drill !== null)
      return says(
        true,
        `a rollback of ${drill.percent} % was rehearsed at ${drill.at}, commands held for ${drill.heldMs.toFixed(0)} ms`,
      );
    return needed
      ? unknown(
          `no rollback was rehearsed${stage === 'shadow' ? '' : ', and a drill is possible in shadow only'}`,
          drillOf({ name, stage, down }),
        )
      : says(true, 'not required by the plan');
  },

  steps: ({ spanning, gates: { steps } }, _now, from, to) => {
    const most = nextShare(from);
    if (to.percent <= most) return says(true, `${to.percent} % of the keys; at most ${most} % in this step`);
    if (!steps) return says(true, 'not required by the plan');
    if (spanning > 0)
      return says(true, `all keys at once: ${number(spanning)} commands spanned hash slots or did not name their keys`);
    return says(
      false,
      `${to.percent} % of the keys requested, at most ${most} % allowed in this step: leave out --percent, and promote by ${SHARES.join(', ')} %`,
    );
  },

  fence: ({ fence }) => judgeFence(fence === 'unknown' ? null : fence),

  checks: ({ checks }) => judgeChecks(checks ?? []),
};

/** A gate that opens when nothing is missing any more. Before that, it says when that will be. */
const counts = (missing: number, evidence: string, left: TimeLeft): GateAnswer =>
  missing <= 0
    ? says(true, evidence)
    : { ...says(false, `${evidence}; ${left.text}`), ...(left.ms !== undefined && { opensInMs: left.ms }) };

/** A form that clients use and one server does not support. */
interface SeenForm extends UnsupportedForm {
  readonly name: string;
}

/**
 * Forms that clients use and one server does not support: those that block, those that were not used for long, and
 * those that the plan allows, each with its reason.
 */
export function unsupportedForms(
  { unsupported }: Pick<WorkloadEvidence, 'unsupported'>,
  { allowUnsupported, unsupportedHours }: Pick<Gates, 'allowUnsupported' | 'unsupportedHours'>,
  now: Date,
): {
  readonly blocking: SeenForm[];
  readonly old: SeenForm[];
  readonly allowed: (SeenForm & { readonly reason: string })[];
} {
  const reasons = allowedForms(allowUnsupported);
  const forms = Object.entries(unsupported).map(([name, form]) => ({
    name,
    ...form,
    reason: reasons.get(name.toLowerCase()),
  }));
  const isOld = ({ last }: SeenForm): boolean => now.getTime() - Date.parse(last) > unsupportedHours * HOUR_MS;
  return {
    blocking: forms.filter((form) => form.reason === undefined && !isOld(form)),
    old: forms.filter((form) => form.reason === undefined && isOld(form)),
    allowed: forms.flatMap((form) => (form.reason === undefined ? [] : [{ ...form, reason: form.reason }])),
  };
}

const seenForm = ({ name, calls, last }: SeenForm, now: Date): string =>
  `${name} (${number(calls)}, last ${ago(now.getTime() - Date.parse(last))} ago)`;

const ago = (ms: number): string =>
  ms < HOUR_MS ? `${Math.max(0, Math.floor(ms / 60_000))} min` : `${(ms / HOUR_MS).toFixed(1)} h`;

/** Maximum number of scripts that are named. */
const SCRIPTS = 3;

/** Names the scripts that changed the keys of inconclusive pairs, and says what to do. */
function byScripts(counts: Readonly<Record<string, number>>, inconclusive: number): string[] {
  const all = sum(counts);
  if (all === 0) return [];
  const first = Object.entries(counts).sort(([, a], [, b]) => b - a);
  const named = first.slice(0, SCRIPTS).map(([script, pairs]) => `${script} ${number(pairs)}`);
  const more = first.length > SCRIPTS ? [`${number(first.length - SCRIPTS)} more`] : [];
  return [
    `${percent(all / inconclusive)} of these on keys that scripts changed and that were not copied in time (${[...named, ...more].join(', ')})`,
    'let these scripts run less often until the share is lower, raise limits.largeKeyBytes if the keys are large, or accept the share with gates.maxInconclusiveShare',
  ];
}

const percent = (share: number): string => `${(share * 100).toFixed(share < 0.01 ? 2 : 0)} %`;
const listed = (counts: Readonly<Record<string, number>>): string =>
  sum(counts) === 0
    ? ''
    : ` (${Object.entries(counts)
        .map(([name, each]) => `${name} ${number(each)}`)
        .join(', ')})`;
