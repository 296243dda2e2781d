/** Finds the servers that a command reads: from URLs as in a plan, and the masters of a cluster. */
import type { FoundCluster } from '../assess/cluster/read-cluster.js';
import { findCluster } from '../assess/cluster/read-cluster.js';
import type { ClusterSide } from '../plan/plan.js';
import type { Endpoint } from '../plan/endpoint.js';
import { PlanError } from '../plan/errors.js';
import { loadPlan, planFrom } from '../plan/load.js';
import { AskError } from '../upstream/asker.js';
import { CliError, exitCode } from './exit.js';

/** Servers, or the masters of one cluster. */
export interface Sources {
  readonly endpoints: readonly Endpoint[];
  /** In the order of the endpoints; null if they are single servers. */
  readonly cluster: FoundCluster | null;
}

/** Addresses of one server, or of nodes of one cluster: the first that answers is used. */
export type Seeds = readonly Endpoint[];

/**
 * Reads the URL as in a plan: environment variables, Sentinels, several nodes of a cluster, certificates.
 * @param option name of the option for errors
 * @throws {PlanError}
 */
export function seedsOf(option: string, url: string, ca: string | undefined): Seeds {
  const tls = ca !== undefined && url.startsWith('rediss') ? { tls: { source: { ca } } } : {};
  const sides = { source: url, target: 'redis://target.invalid:1', listen: 'redis://127.0.0.1:0', ...tls };
  const isCluster = url.includes(',') && !url.includes('+sentinel://');
  const value = {
    version: 1,
    name: 'assess',
    ...(isCluster ? { cluster: sides } : { shards: [{ name: 'assess', ...sides }] }),
  };
  try {
    const plan = planFrom(value, 'shadow-compare', { directory: process.cwd(), env: process.env });
    return plan.cluster === null ? [plan.shards[0].source] : nodesOf(plan.cluster.source);
  } catch (error) {
    if (!(error instanceof PlanError)) throw error;
    throw new PlanError(
      'shadow-compare',
      error.problems.map(({ message }) => ({ path: [option], message })),
    );
  }
}

/** The seeds of each shard, or of the cluster. @throws {PlanError} */
export function seedsIn(file: string): Seeds[] {
  const { cluster, shards } = loadPlan(file);
  return cluster === null ? shards.map(({ source }) => [source]) : [nodesOf(cluster.source)];
}

const nodesOf = ({ seeds, label, tls, username, password }: ClusterSide): Seeds =>
  seeds.map((seed) => ({ kind: 'server', label, tls, username, password, db: 0, ...seed }));

/**
 * Asks each server whether it is a node of a cluster.
 * @throws {AskError} if no address of a server answers
 * @throws {CliError} if the servers belong to several clusters, or only some belong to one
 */
export async function findSources(all: readonly Seeds[]): Promise<Sources> {
  const found = await Promise.all(all.map((seeds) => firstThatAnswers(seeds)));
  const [first] = found;
  if (found.every(({ cluster }) => cluster === null))
    return { endpoints: found.map(({ endpoint }) => endpoint), cluster: null };
  const idsOf = ({ cluster }: FoundServer): string => cluster?.facts.masters.map(({ id }) => id).join() ?? '';
  if (found.some((each) => idsOf(each) !== idsOf(first)))
    throw new CliError(
      'several-clusters',
      'the sources are not nodes of one cluster: name nodes of one cluster, or single servers alone',
      exitCode.usage,
    );
  return { endpoints: first.cluster!.endpoints, cluster: first.cluster };
}

interface FoundServer {
  readonly endpoint: Endpoint;
  readonly cluster: FoundCluster | null;
}

async function firstThatAnswers(seeds: Seeds): Promise<FoundServer> {
  const failures: string[] = [];
  for (const endpoint of seeds) {
    try {
      return { endpoint, cluster: await findCluster(endpoint) };
    } catch (problem) {
      if (!(problem instanceof AskError)) throw problem;
      failures.push(problem.message);
    }
  }
  throw new AskError([...new Set(failures)].join('; '));
}
