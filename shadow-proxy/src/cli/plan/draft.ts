/** Writes the plan from the observations: its servers, and notes on what it does not cover. */
import { dirname, relative, resolve } from 'node:path';
import { clusterUrl } from '../../assess/cluster/snippet.js';
import { compose } from '../../assess/workloads/draft-plan.js';
import type { Endpoint } from '../../plan/endpoint.js';
import type { SourceObservations } from './observe.js';

export interface DraftOptions {
  readonly from: string;
  readonly target?: string;
  readonly listen?: string;
  readonly name: string;
  readonly out: string;
  readonly ca?: string;
}

/** Findings that a plan cannot remove, and that its author should know; `assess` reports the others. */
const NOTED = [
  'modules',
  'commands',
  'functions',
  'sharded pub/sub',
  'scripts',
  'databases',
  'keyspace-scans',
  'database-swaps',
  'replicas',
  'clients',
  'cluster state',
  'sample',
];
const PLACEHOLDER = 'redis://keydb.internal:6379';

/**
 * The text of the plan, and the environment variables that it needs, because a plan contains no password.
 * @param seen observations of the source
 */
export function draftOf(
  seen: SourceObservations,
  options: DraftOptions,
): { text: string; env: Readonly<Record<string, string>> } {
  const { source, target, facts, findings } = seen;
  const [at, to] = [source.endpoints[0], target?.endpoints[0] ?? null];
  const variables = {
    source: variableIn(options.from) ?? 'REDIS_PASSWORD',
    target: variableIn(options.target ?? '') ?? 'KEYDB_PASSWORD',
  };
  const isCluster = source.cluster !== null;
  const urls = {
    source: isCluster ? clusterUrl(source.endpoints, variables.source)! : urlOf(at, variables.source),
    target:
      to === null
        ? PLACEHOLDER
        : isCluster
          ? (clusterUrl(target!.endpoints, variables.target) ?? urlOf(to, variables.target))
          : urlOf(to, variables.target),
  };
  const env = Object.fromEntries([
    ...(at.password === null ? [] : [[variables.source, at.password]]),
    ...(to === null || to.password === null ? [] : [[variables.target, to.password]]),
  ] as [string, string][]);
  const { version } = facts[0];
  const text = compose({
    ...seen,
    name: options.name,
    file: options.out,
    readAt: new Date(),
    origin: `${isCluster ? `the Redis Cluster at ${facts[0].label}` : facts[0].label} (${facts[0].isKeydb ? 'KeyDB' : 'Redis'} ${version})`,
    servers: serversOf(seen, options, urls),
    serverNotes: [
      ...Object.keys(env).map(
        (name) => `\${${name}} is an environment variable of the proxy: the plan has no password.`,
      ),
      ...(to === null
        ? [
            `Replace ${new URL(PLACEHOLDER).hostname} by the address of your KeyDB${isCluster ? ', or those of nodes of your KeyDB cluster with commas between them' : ''}.`,
          ]
        : []),
      ...(seen.cuts.length > 0 ? ['cuts: a master had more load than one proxy takes when this was written.'] : []),
    ],
    notes: findings
      .filter(({ about }) => NOTED.includes(about) && !(isCluster && about === 'databases'))
      .map(({ what, means }) => `${what}: ${means}.`),
  });
  return { text, env };
}

/** The `NAME` in a URL with `:${NAME}@`. */
const variableIn = (url: string): string | null => /:\$\{([^}]+)\}@/.exec(url)?.[1] ?? null;

const urlOf = ({ label }: Endpoint, variable: string): string => label.replace(':***@', `:\${${variable}}@`);

function serversOf(
  { source, target, cuts }: SourceObservations,
  { name, listen, ca: file, out }: DraftOptions,
  urls: { readonly source: string; readonly target: string },
): object {
  const secure = (endpoints: readonly Endpoint[] | undefined): boolean => (endpoints?.[0].tls ?? null) !== null;
  // Paths in a plan are relative to it.
  const ca = file && relative(dirname(resolve(out)), resolve(file));
  const tls = {
    ...(ca !== undefined && secure(source.endpoints) ? { source: { ca } } : {}),
    ...(ca !== undefined && secure(target?.endpoints) ? { target: { ca } } : {}),
  };
  const isCluster = source.cluster !== null;
  const address = listen ?? (isCluster ? '127.0.0.1:7000' : '127.0.0.1:6400');
  const sides = {
    listen: address.includes('://') ? address : `redis://${address}`,
    ...urls,
    ...(cuts.length === 0 ? {} : { cuts }),
    ...(Object.keys(tls).length === 0 ? {} : { tls }),
  };
  return isCluster ? { cluster: sides } : { shards: [{ name: `${name}-0`, ...sides }] };
}
