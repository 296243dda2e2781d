/**
 * Go or no-go, line by line: pure decisions over what was read.
 *
 * Room: assess: go or no-go: pure decisions over facts read from live servers.
 * Called by: cli.
 * Calls: text, resp, plan, command, upstream.
 */
import { cachesOfAws, neededCommands } from './about-elasticache.js';
import { managed, modules, newerCommands, options, scripts, unseenCommands } from './about-commands.js';
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
import { clients, clocks, refusals, replicas, settings, users, versions } from './about-servers.js';

export type Conclusion = 'go' | 'no-go' | 'unknown';

/** A reason against decides; then one for it; without either, there is nothing to gain. */
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
    newerCommands,
    options,
    unseenCommands,
    managed,
    proxyCeiling,
    versions,
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
  return each.flatMap((judge) => judge(question));
}
