/**
 * Findings about sources that are ElastiCache, or refuse the same commands: what an assessment cannot read there, and
 * where to find it instead (`docs/elasticache.md`).
 */
import { cacheEndpointOf } from '../plan/elasticache.js';
import type { Endpoint } from '../plan/endpoint.js';
import type { InstanceFacts } from './instance-facts.js';
import type { Finding, Question } from './finding.js';

/** Commands that AWS documents as unavailable, for ElastiCache with nodes and Redis OSS. */
export const UNAVAILABLE: readonly string[] = [
  'BGREWRITEAOF',
  'BGSAVE',
  'CONFIG',
  'DEBUG',
  'MIGRATE',
  'REPLICAOF',
  'SAVE',
  'SHUTDOWN',
  'SLAVEOF',
  'SYNC',
];

/**
 * How a server shows that it is ElastiCache, or behaves like it; null if it does not.
 * @param info its `INFO` @param lacks which of `UNAVAILABLE` it does not know
 */
export function recognise(
  endpoint: Endpoint,
  info: ReadonlyMap<string, string>,
  lacks: readonly string[],
): string | null {
  if (endpoint.kind === 'server' && cacheEndpointOf(endpoint.host) !== null) return 'its name says so';
  if (/ElastiCache/i.test(info.get('os') ?? '')) return 'INFO says so';
  return lacks.length === UNAVAILABLE.length ? `it has none of ${lacks.join(', ')}, as AWS documents it` : null;
}

/** Parameters of the group that change what clients see, and that INFO does not show. */
const PARAMETERS = 'notify-keyspace-events, timeout, client-output-buffer-limit-*, lua-time-limit';

export const cachesOfAws = ({ sources, target }: Question): Finding[] =>
  sources
    .filter(({ elastiCache }) => elastiCache !== null)
    .flatMap((source) => [...recognised(source), ...parameters(source, target), ...readers(source)]);

const recognised = ({ label, elastiCache }: InstanceFacts): Finding[] => [
  {
    about: 'elasticache',
    weight: 'note',
    what: `${label} is ElastiCache, or behaves so: ${elastiCache}`,
    means: 'docs/elasticache.md says what to set, and what was not tried',
  },
];

/** If `CONFIG` is refused, the settings in INFO are compared, and the others are named. */
function parameters({ label, settings, memory }: InstanceFacts, target: InstanceFacts | null): Finding[] {
  if (settings !== null) return [];
  const policy = memory.policy ?? 'unknown';
  const there = target?.memory.policy ?? null;
  const differs = there !== null && there !== policy ? ` (target: ${there})` : '';
  return [
    {
      about: 'parameter group',
      weight: 'first',
      what: `${label} refuses CONFIG, so its settings were not compared; INFO shows maxmemory-policy ${policy}${differs}; not known: ${PARAMETERS}`,
      means:
        'read them with aws elasticache describe-cache-parameters, and set the same on KeyDB: maxmemory-policy and notify-keyspace-events change what clients see. maxmemory is what reserved-memory-percent leaves of the node',
    },
  ];
}

function readers({ label, oneNode, replicas, role }: InstanceFacts): Finding[] {
  const found: Finding[] = [];
  if (oneNode && (replicas.length > 0 || role === 'slave'))
    found.push({
      about: 'endpoint',
      weight: 'first',
      what: `${label} is the endpoint of one node of several`,
      means: 'use the primary endpoint in the plan: after a failover, this node is a replica and refuses writes',
    });
  if (replicas.length > 0)
    found.push({
      about: 'reader endpoint',
      weight: 'first',
      what: `${label} has ${replicas.length === 1 ? 'a replica' : `${replicas.length} replicas`}, to which a reader endpoint leads`,
      means: 'point clients of the reader endpoint at the proxy, too: their reads bypass it, and stay on the old data',
    });
  return found;
}

/** Commands renamed by `rename-commands` of the parameter group, or by `rename-command`. */
export const neededCommands = ({ sources }: Question): Finding[] =>
  sources
    .filter(({ lacks }) => lacks.length > 0)
    .map(({ label, lacks }) => ({
      about: 'renamed commands',
      weight: 'first',
      what: `${label} has no ${lacks.join(', ')} (renamed or disabled)`,
      means:
        'the proxy needs these commands: give them back their names (rename-command; rename-commands of a parameter group)',
    }));
