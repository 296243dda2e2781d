/**
 * The assessment, line by line: pure decisions from facts.
 *
 * Room: assess: go or no-go, and a first plan: pure decisions over facts read from live servers.
 * Called by: cli.
 * Calls: text, io, resp, route, plan, command, telemetry, upstream.
 */
import { clusters } from './about-cluster.js';
import { cachesOfAws, neededCommands } from './about-elasticache.js';
import { fieldTtls, managed, modules, newerCommands, options, scripts, unseenCommands } from './about-commands.js';
import type { Finding, Question, Weight } from './finding.js';
import {
  connections,
  cpu,
  databases,
  evictions,
  largeKeys,
  memory,
  proxyCeiling,
  queueing,
  databaseSwaps,
  keyspaceScans,
} from './about-load.js';
import { clients, clocks, refusals, replicas, settings, users, newerVersions, versions } from './about-servers.js';

export type Conclusion = 'go' | 'no-go' | 'unknown';

/** A reason against a migration decides; then a reason for it; without either, there is nothing to gain. */
export function concludeFrom(findings: readonly Finding[]): { conclusion: Conclusion; because: string } {
  const of = (weight: Weight): Finding[] => findings.filter((finding) => finding.weight === weight);
  const against = of('no-go');
  if (against.length > 0) return { conclusion: 'no-go', because: against.map(({ about }) => about).join(', ') };
  const speaks = of('go');
  if (speaks.length > 0) return { conclusion: 'go', because: speaks.map(({ about }) => about).join(', ') };
  const undecided = of('unknown');
  if (undecided.length > 0) return { conclusion: 'unknown', because: undecided.map(({ about }) => about).join(', ') };
  return { conclusion: 'no-go', because: 'found nothing that KeyDB would help with' };
}

export function findingsOf(question: Question): Finding[] {
  const each = [
    cpu,
    connections,
    queueing,
    memory,
    modules,
    fieldTtls,
    newerCommands,
    options,
    unseenCommands,
    managed,
    proxyCeiling,
    clusters,
    versions,
    newerVersions,
    cachesOfAws,
    neededCommands,
    clocks,
    replicas,
    settings,
    clients,
    users,
    scripts,
    databaseSwaps,
    keyspaceScans,
    databases,
    largeKeys,
    evictions,
    refusals,
  ];
  const findings = each.flatMap((judge) => judge(question));
  return question.cluster === null ? findings : oncePerCluster(findings, question.sources);
}

/** Placeholder for the name of a server. */
const NAME = '\0';

/** Masters of one cluster are alike: a finding about several of them is reported once. */
function oncePerCluster(findings: readonly Finding[], sources: Question['sources']): Finding[] {
  // One name may be the beginning of another.
  const labels = sources.map(({ label }) => label).sort((a, b) => b.length - a.length);
  const groups = new Map<string, { readonly finding: Finding; readonly named: string[] }>();
  for (const finding of findings) {
    const label = labels.find((each) => finding.what.includes(each));
    const nameless = label === undefined ? finding : { ...finding, what: finding.what.replaceAll(label, NAME) };
    const id = JSON.stringify(nameless);
    const group = groups.get(id) ?? { finding: nameless, named: [] };
    if (label !== undefined) group.named.push(label);
    groups.set(id, group);
  }
  return [...groups.values()].map(({ finding, named }) => ({
    ...finding,
    what: finding.what.replaceAll(
      NAME,
      named.length > 1 && named.length === labels.length ? 'each master' : named.join(', '),
    ),
  }));
}
