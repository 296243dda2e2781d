/** Reads what `plan init` needs from a source: each server, a sample of the keys, MONITOR, channels. */
import { cutsOf } from '../../assess/cluster/cuts.js';
import type { InstanceFacts } from '../../assess/instance-facts.js';
import type { Finding } from '../../assess/finding.js';
import { findingsOf } from '../../assess/findings.js';
import { monitor } from '../../assess/monitor.js';
import { newerThanKnown, readInstance } from '../../assess/read-instance.js';
import { Families } from '../../assess/workloads/family.js';
import { propose, type Proposal } from '../../assess/workloads/propose.js';
import { refine } from '../../plan/cluster-shards.js';
import type { Endpoint } from '../../plan/endpoint.js';
import { text } from '../../resp/decode.js';
import { prefixOf } from '../../telemetry/prefixes.js';
import { AskError, asking, askingAll } from '../../upstream/asker.js';
import { PROXY_OPS, questionOf } from '../assess/read-servers.js';
import { announceMonitor } from '../monitor-option.js';
import type { Sources } from '../sources.js';

export interface Sampling {
  /** Number of keys of each server of the source. */
  readonly keys: readonly number[];
  /** How many keys are sampled in all. */
  readonly sample: number;
  /** Null: MONITOR does not run. */
  readonly monitorMs: number | null;
}

export interface SourceObservations {
  readonly source: Sources;
  readonly target: Sources | null;
  readonly facts: readonly InstanceFacts[];
  readonly keys: number;
  readonly sampled: number;
  /** What MONITOR showed for all servers together; or a text that says why it showed nothing. */
  readonly monitored: { readonly ms: number; readonly commands: number } | string;
  readonly proposal: Proposal;
  /** Notes about servers that are newer than this release knows; each begins with the server's label. */
  readonly newer: readonly string[];
  /** The findings of `assess`. */
  readonly findings: readonly Finding[];
  /** Slots of a cluster at which a further shard should begin. */
  readonly cuts: readonly number[];
}

/** The load matters little here, so a short time is enough; `assess` watches for longer. */
const WATCH_MS = 500;
/** From these sizes on, a key is copied in chunks: the defaults of `limits` in a plan. */
const LARGE = { bytes: 1 << 20, elements: 10_000 };
/** The servers' own channels: keyspace events, and those of Sentinel. */
const ITS_OWN = /^__/;

export async function observe(
  source: Sources,
  target: Sources | null,
  sampling: Sampling,
): Promise<SourceObservations> {
  const { keys, sample, monitorMs } = sampling;
  const all = keys.reduce((a, b) => a + b, 0);
  const families = new Families(LARGE);
  const facts = await askingAll(source.endpoints, (endpoint, signal, i) =>
    readInstance(
      endpoint,
      {
        watchMs: WATCH_MS,
        keys: Math.floor((sample * keys[i]) / (all || 1)),
        seeKey: (key) => families.add(key),
      },
      signal,
    ),
  );
  const monitored = await monitorAll(source.endpoints, monitorMs, families);
  const channels = await channelsAt(source.endpoints);
  const calls = new Map<string, number>();
  for (const each of facts) for (const [name, n] of each.calls) calls.set(name, (calls.get(name) ?? 0) + n);
  const question = await questionOf(
    { sources: facts, target: null, cluster: source.cluster, targets: target, traffic: null },
    { kind: 'aligned', by: null, masters: null, proxyOps: PROXY_OPS },
  );
  const targets = target?.cluster?.facts.masters ?? null;
  const newer = [...facts.map(({ label, newer: found }) => ({ label, newer: found })), ...(await newerAt(target))];
  return {
    source,
    target,
    facts,
    keys: all,
    sampled: facts.reduce((sum, { keySample }) => sum + keySample.keys, 0),
    monitored,
    proposal: propose(families.all, channels, calls),
    newer: newer.flatMap(({ label, newer: found }) => (found === null ? [] : [`${label} is ${found.evidence}.`])),
    findings: findingsOf({ sources: facts, cluster: question, target: null, requires: [], proxyOps: PROXY_OPS }),
    cuts:
      question === null
        ? []
        : cutsOf(refine(question.facts.masters, targets, []), question.weights.load, question.capacity),
  };
}

/** The servers of the target, which are asked nothing else. */
async function newerAt(target: Sources | null): Promise<Pick<InstanceFacts, 'label' | 'newer'>[]> {
  return askingAll(target?.endpoints ?? [], (endpoint, signal) =>
    asking(
      endpoint,
      async (asker) => ({ label: endpoint.label, newer: await newerThanKnown(asker, await asker.info()) }),
      signal,
    ),
  );
}

async function monitorAll(
  endpoints: readonly Endpoint[],
  ms: number | null,
  families: Families,
): Promise<SourceObservations['monitored']> {
  if (ms === null) return 'MONITOR was not run (--monitor 10s): what is done to the keys was not seen.';
  announceMonitor(endpoints.length, ms);
  try {
    const seen = await askingAll(endpoints, (endpoint, signal) =>
      monitor(endpoint, ms, (key) => families.see(key), signal),
    );
    return { ms, commands: seen.reduce((sum, { commands }) => sum + commands, 0) };
  } catch (problem) {
    if (!(problem instanceof AskError)) throw problem;
    return `MONITOR failed, so that what is done to the keys was not seen: ${problem.message}.`;
  }
}

/** Patterns of the channels to which clients are subscribed now. */
async function channelsAt(endpoints: readonly Endpoint[]): Promise<string[]> {
  const patterns = new Set<string>();
  for (const endpoint of endpoints) {
    const channels = await asking(endpoint, (asker) => asker.may('PUBSUB', 'CHANNELS'));
    for (const channel of channels?.items ?? [])
      if (!ITS_OWN.test(text(channel))) patterns.add(prefixOf(text(channel)));
  }
  return [...patterns].sort();
}
