/** The `cluster:` part of a plan, to be pasted. */
import { stringify } from 'yaml';
import { formatAddress, type Endpoint } from '../../plan/endpoint.js';

/** How many nodes are named: any of them knows the others. */
const SEEDS = 3;

/**
 * A URL that names some of the nodes; null if none is named by its address.
 * @param variable names the environment variable that stands for the password: a plan has none in the clear
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

/** As YAML; clients find the proxies on this machine until `listen` says otherwise. */
export const clusterYaml = ({ source, target, cuts }: ClusterLines): string =>
  stringify(
    { cluster: { source, target, listen: 'redis://127.0.0.1:7000', ...(cuts.length === 0 ? {} : { cuts }) } },
    { lineWidth: 0, flowCollectionPadding: false },
  ).trimEnd();
