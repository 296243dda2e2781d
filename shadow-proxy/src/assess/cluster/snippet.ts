/** The `cluster:` part of a plan, ready to be pasted. */
import { stringify } from 'yaml';
import { formatAddress, type Endpoint } from '../../plan/endpoint.js';

/** Number of nodes that are named: each of them knows the others. */
const SEEDS = 3;

/**
 * A URL that names some of the nodes; null if none has an address.
 * @param variable name of the environment variable for the password, which a plan does not contain
 */
export function clusterUrl(endpoints: readonly Endpoint[], variable: string): string | null {
  const hosts = endpoints.flatMap((each) => (each.kind === 'server' ? [formatAddress(each)] : []));
  if (hosts.length === 0) return null;
  const { tls, username, password } = endpoints[0];
  const user = encodeURIComponent(username ?? '');
  const login = password === null ? user : `${user}:\${${variable}}`;
  return `redis${tls === null ? '' : 's'}://${login === '' ? '' : `${login}@`}${hosts.slice(0, SEEDS).join(',')}`;
}

export interface ClusterLines {
  /** URLs. */
  readonly source: string;
  readonly target: string;
  readonly cuts: readonly number[];
}

/** The part as YAML; clients find the proxies on this machine until `listen` is changed. */
export const clusterYaml = ({ source, target, cuts }: ClusterLines): string =>
  stringify(
    { cluster: { source, target, listen: 'redis://127.0.0.1:7000', ...(cuts.length === 0 ? {} : { cuts }) } },
    { lineWidth: 0, flowCollectionPadding: false },
  ).trimEnd();
