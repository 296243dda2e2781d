/** Conditions of a shard that begin, change and end. They are found by comparing each scrape with the one before. */
import type { NotifyEvent } from '../plan/plan.js';
import type { OutageSnapshot, ScrapedShard, WorkloadSnapshot } from '../telemetry/snapshot.js';
import { insteadOf } from '../telemetry/advice.js';
import { count, number } from '../text/figures.js';
import type { Happening, Severity } from './notice.js';

/** All in ms. */
export const TIMING = {
  /** How long a gate must stay closed: repairs of single keys close and open gates all the time. */
  gateHoldMs: 60_000,
  /** Further mismatches of a workload are summed up for this time. */
  mismatchEveryMs: 10 * 60_000,
  /** After this time without another mismatch, the condition ends. */
  mismatchQuietMs: 30 * 60_000,
  /** Suspects increase if there are more than this time ago, and there were some all the time. */
  suspectsMs: 5 * 60_000,
};

/** A condition at one scrape. */
interface PresentCondition {
  readonly event: NotifyEvent;
  readonly key: string;
  readonly severity: Severity;
  readonly workload: string | null;
  readonly summary: string;
  readonly details: Happening['details'];
  readonly since: number;
  /** When this changes, people are notified again. */
  readonly version: string;
}

interface Mismatches {
  /** Count since the process began. */
  total: number;
  reported: number;
  reportedAt: number;
  /** When the last mismatch was seen. */
  lastAt: number;
  /** When the condition began, and the count before; null if there is no such condition now. */
  episode: { readonly since: number; readonly before: number } | null;
}

interface Gate {
  /** When the workload entered its stage: each stage has other gates. */
  readonly stageSince: number;
  /** Since when the gate has been closed; null if it is open. */
  closedAt: number | null;
}

/** The conditions of one shard. */
export class Conditions {
  readonly #firing = new Map<string, PresentCondition>();
  /** Gates that were open in the workload's stage. */
  readonly #gates = new Map<string, Gate>();
  readonly #mismatches = new Map<string, Mismatches>();
  readonly #suspects = new Map<string, { readonly at: number; readonly keys: number }[]>();

  constructor(
    private readonly shard: string,
    private readonly timing = TIMING,
  ) {}

  /** Conditions that still hold, and are notified again. */
  get firing(): readonly Happening[] {
    return [...this.#firing.values()].map((held) => this.#say(held, 'firing'));
  }

  /** What has begun, changed or ended since the last scrape. @param now in ms since 1970 */
  update(shard: ScrapedShard, now: number): readonly Happening[] {
    const held = [
      ...shard.workloads.flatMap((workload) => this.#mismatch(workload, now)),
      ...shard.workloads.flatMap((workload) => this.#growing(workload, now)),
      ...this.#closedGates(shard, now),
      ...this.#frozen(shard, now),
      ...outage(shard),
    ];
    const changed = held.filter(({ key, version }) => this.#firing.get(key)?.version !== version);
    const ended = [...this.#firing.values()].filter((each) => !held.some(({ key }) => key === each.key));
    this.#firing.clear();
    for (const each of held) this.#firing.set(each.key, each);
    return [
      ...changed.map((each) => this.#say(each, 'firing')),
      ...ended.map((each) => this.#say({ ...each, summary: `Over: ${each.summary}` }, 'resolved')),
    ];
  }

  #say({ version: _, ...held }: PresentCondition, state: Happening['state']): Happening {
    return { ...held, shard: this.shard, state };
  }

  #mismatch({ name, stage, mismatches }: WorkloadSnapshot, now: number): PresentCondition[] {
    const known = this.#mismatches.get(name);
    if (known === undefined) {
      this.#mismatches.set(name, { total: mismatches, reported: 0, reportedAt: -Infinity, lastAt: 0, episode: null });
      return [];
    }
    if (mismatches > known.total) {
      known.episode ??= { since: now, before: known.total };
      known.lastAt = now;
      known.total = mismatches;
    }
    if (known.episode === null) return [];
    if (now - known.lastAt >= this.timing.mismatchQuietMs) {
      known.episode = null;
      return [];
    }
    if (mismatches > known.reported && now - known.reportedAt >= this.timing.mismatchEveryMs)
      [known.reported, known.reportedAt] = [mismatches, now];
    const found = known.reported - known.episode.before;
    return [
      {
        event: 'mismatch',
        key: `${this.shard}/${name}/mismatch`,
        severity: 'critical',
        workload: name,
        summary: `${count(found, 'mismatch', 'mismatches')} in workload ${name} (${stage}): source and target gave different replies. The ledger names commands and keys`,
        details: { stage, mismatches: found },
        since: known.episode.since,
        version: String(known.reported),
      },
    ];
  }

  #growing({ name, suspects }: WorkloadSnapshot, now: number): PresentCondition[] {
    const seen = this.#suspects.get(name) ?? [];
    this.#suspects.set(name, seen);
    seen.push({ at: now, keys: suspects });
    // The first entry that is kept is as old as the window, or the oldest.
    while (seen.length > 1 && seen[1].at <= now - this.timing.suspectsMs) seen.shift();
    const key = `${this.shard}/${name}/suspects`;
    const [first] = seen;
    const whole = now - first.at >= this.timing.suspectsMs;
    const grows = whole && suspects > first.keys && seen.every(({ keys }) => keys > 0);
    const before = this.#firing.get(key);
    // The condition ends when the number of suspects falls, not when it stays the same.
    if (!grows && (before === undefined || suspects === 0 || suspects < first.keys)) return [];
    return [
      {
        event: 'suspects',
        key,
        severity: 'warning',
        workload: name,
        summary: `Suspect keys of workload ${name} increase: ${number(suspects)} now. Keys become suspects faster than they are repaired`,
        details: { suspects },
        since: before?.since ?? first.at,
        version: '',
      },
    ];
  }

  #closedGates({ watch, workloads }: ScrapedShard, now: number): PresentCondition[] {
    return watch.workloads.flatMap(({ workload, gates, since }): PresentCondition[] => {
      const closed = Object.entries(gates).flatMap(([gate, answer]) => {
        const at = this.#closedAt(`${workload}/${gate}`, since, answer, now);
        return at === null || now - at < this.timing.gateHoldMs ? [] : [{ gate, at }];
      });
      if (closed.length === 0) return [];
      const stage = workloads.find(({ name }) => name === workload)?.stage ?? '';
      const names = closed.map(({ gate }) => gate).join(', ');
      return [
        {
          event: 'gate',
          key: `${this.shard}/${workload}/gate`,
          severity: 'warning',
          workload,
          summary: `Workload ${workload} (${stage}) would not be promoted any more. Gates that were open are closed: ${names}`,
          details: { stage, gates: names },
          since: Math.min(...closed.map(({ at }) => at)),
          version: names,
        },
      ];
    });
  }

  /** Since when a gate that was open in this stage has been closed; null if it is not. */
  #closedAt(key: string, stageSince: number, answer: string, now: number): number | null {
    const gate = this.#gates.get(key);
    if (answer === 'yes') this.#gates.set(key, { stageSince, closedAt: null });
    if (answer === 'yes' || gate === undefined) return null;
    if (gate.stageSince !== stageSince) {
      this.#gates.delete(key);
      return null;
    }
    if (answer === 'no') gate.closedAt ??= now;
    return gate.closedAt;
  }

  #frozen({ frozen }: ScrapedShard, now: number): PresentCondition[] {
    if (frozen === null) return [];
    const key = `${this.shard}/frozen`;
    return [
      {
        event: 'frozen',
        key,
        severity: 'critical',
        workload: null,
        summary: `Repairs of shard ${this.shard} are frozen until you decide: ${frozen}`,
        details: { reason: frozen },
        since: this.#firing.get(key)?.since ?? now,
        version: frozen,
      },
    ];
  }
}

function outage({ name: shard, outage: now }: ScrapedShard): PresentCondition[] {
  if (now === null || now.endedAt !== null) return [];
  const { side, since, workloads } = now;
  const summary = `The ${side} of shard ${shard} is down: ${consequence(now)}`;
  return [
    {
      event: 'outage',
      key: `${shard}/outage/${side}`,
      severity: 'critical',
      workload: null,
      summary,
      details: { server: side, workloads: workloads.map(({ name }) => name).join(', ') },
      since: Date.parse(since),
      version: summary,
    },
  ];
}

function consequence({ workloads }: OutageSnapshot): string {
  const waiting = workloads.filter(({ movedTo }) => movedTo === null);
  if (workloads.length === 0) return 'its clients wait';
  if (waiting.length === 0) return 'its clients were moved to the mirror';
  const [{ why, next }] = waiting;
  const ways = waiting.map((each) => insteadOf(each)).join('');
  return `clients of ${waiting.map(({ name }) => name).join(', ')} get errors (${why}). Next: ${next}${ways}`;
}
