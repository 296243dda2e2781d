/**
 * Endpoints of ElastiCache, by the names that AWS gives them (`docs/elasticache.md`):
 *
 *   master.cache-a.abc123.use1.cache.amazonaws.com              primary, with TLS
 *   cache-a.abc123.ng.0001.use1.cache.amazonaws.com             primary, without
 *   replica.cache-a.abc123.use1.cache.amazonaws.com             reader, with TLS
 *   cache-a-ro.abc123.ng.0001.use1.cache.amazonaws.com          reader, without
 *   cache-a-001.cache-a.abc123.use1.cache.amazonaws.com         one node
 *   clustercfg.cache-a.abc123.use1.cache.amazonaws.com          cluster mode enabled
 *   cache-a-abc123.serverless.use1.cache.amazonaws.com          Serverless
 */

export type CacheEndpoint = 'primary' | 'reader' | 'node' | 'cluster' | 'serverless';

const DOMAIN = /\.cache\.amazonaws\.com(\.cn)?\.?$/i;

/** What kind of endpoint the host is; null if its name is not one of ElastiCache. */
export function cacheEndpointOf(host: string): CacheEndpoint | null {
  if (!DOMAIN.test(host)) return null;
  const labels = host.toLowerCase().replace(DOMAIN, '').split('.');
  if (labels.includes('serverless')) return 'serverless';
  if (labels.includes('clustercfg')) return 'cluster';
  if (labels[0] === 'replica' || (labels[0].endsWith('-ro') && labels.includes('ng'))) return 'reader';
  if (labels[0] === 'master' || labels.includes('ng')) return 'primary';
  return 'node';
}

/** The name of the primary endpoint that belongs to a reader endpoint. */
const primaryOf = (reader: string): string => reader.replace(/^replica\./i, 'master.').replace(/^([^.]+)-ro\./i, '$1.');

/** Why the kit does not migrate from or to that host, and what to do instead; null if the name shows no reason. */
export function cacheEndpointProblem(host: string): string | null {
  switch (cacheEndpointOf(host)) {
    case 'serverless':
      return `is ${host}, a cache of ElastiCache Serverless, which is not supported: it always runs in cluster mode, and refuses CLIENT LIST and CLIENT KILL, without which the proxy cannot know that it alone serves the shard. Restore its data into a node-based cluster with cluster mode disabled first (docs/elasticache.md)`;
    case 'cluster':
      return `is ${host}, the configuration endpoint of an ElastiCache cluster with cluster mode enabled, which is not supported: the proxy serves single servers, not the slots of a cluster. Move the data to a replication group with cluster mode disabled first, and use its primary endpoint (docs/elasticache.md)`;
    case 'reader':
      return `is ${host}, a reader endpoint of ElastiCache: it leads to replicas, which refuse writes. Use the primary endpoint, ${primaryOf(host)}`;
    default:
      return null;
  }
}
