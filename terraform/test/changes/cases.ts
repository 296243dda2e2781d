/** Each variable of environments/aws, changed alone. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AWS, VARIABLES, type Variables } from './environment.js';

/** The environment that is there before the change. */
export type Before =
  | 'names by DNS'
  | 'names by a load balancer'
  | 'three nodes for each target'
  | 'all hosts replaceable'
  | 'nothing protected'
  | 'a cluster';

export interface Case {
  /** As the table says it. */
  readonly change: string;
  readonly before: Before;
  readonly after: Variables;
}

const CLUSTER = {
  source: ['0-5460', '5461-10922', '10923-16383'],
  target: { 'keydb-0': '0-5460', 'keydb-1': '5461-10922', 'keydb-2': '10923-16383' },
};

const HOSTS = ['keydb-0-1', 'keydb-0-2', 'proxy-cache-0', 'proxy-cache-1', 'monitoring', 'loadgen-1'];

export const BEFORE: Readonly<Record<Before, Variables>> = {
  'names by DNS': VARIABLES,
  'names by a load balancer': { ...VARIABLES, names_via: 'nlb' },
  'three nodes for each target': { ...VARIABLES, keydb: { nodes_per_target: 3 } },
  'all hosts replaceable': { ...VARIABLES, replaceable: HOSTS },
  'nothing protected': { ...VARIABLES, protect: false },
  'a cluster': {
    ...VARIABLES,
    plan_file: join(AWS, 'tests', 'plans', 'cluster.yaml'),
    names: {},
    names_via: 'nlb',
    sources: { cluster: { version: '6.2', memory_bytes: 1073741824 } },
    cluster: CLUSTER,
  },
};

/** The changes; a plan file that is changed goes into that folder. */
export function cases(folder: string): Case[] {
  const planWith = (name: string, from: string | RegExp, to: string): Variables => {
    const file = join(folder, `${name}.yaml`);
    writeFileSync(file, readFileSync(String(VARIABLES.plan_file), 'utf8').replaceAll(from, to));
    return { plan_file: file };
  };
  const renamed = planWith('renamed', 'name: checkout-cache', 'name: basket-cache');
  const otherTarget = planWith('target', 'keydb-0.cache', 'keydb-1.cache');
  const { 'cache-0': first, ...others } = VARIABLES.sources as Record<string, unknown>;
  const otherShard = {
    ...planWith('shard', 'name: cache-0', 'name: basket'),
    names: { checkout: { shard: 'basket', to: 'proxy' } },
    sources: { basket: first, ...others },
  };
  const moreTargets = planWith('targets', /(10\.0\.0\.12:6379\n.*)keydb-0/g, '$1a-target');
  const otherSource = planWith('source', '10.0.0.12', '10.0.0.13');
  const turned = { subnet_ids: ['subnet-0b', 'subnet-0a'] };
  const data = { gib: 128, iops: 6000, throughput: 250 };

  const byDns: Readonly<Record<string, Variables>> = {
    '`tags`': { tags: { Team: 'cache' } },
    '`ami_id`': { ami_id: 'ami-11111111' },
    '`access.key_name`': { access: { key_name: 'ops' } },
    '`access.via`, `from`, `user`': { access: { via: 'ssh', key_name: 'ops', user: 'ubuntu', from: ['10.20.0.0/16'] } },
    '`keydb.instance_type`': { keydb: { instance_type: 'r7g.xlarge' } },
    '`keydb.maxmemory_percent`': { keydb: { maxmemory_percent: 50 } },
    '`keydb.data`': { keydb: { data } },
    '`keydb.nodes_per_target`: more': { keydb: { nodes_per_target: 3 } },
    '`keydb.spread`': { keydb: { spread: false } },
    '`shadow_proxy.instance_type`': { shadow_proxy: { instance_type: 'c7g.xlarge' } },
    '`shadow_proxy.data`': { shadow_proxy: { data } },
    '`shadow_proxy.per_shard`: 2': { shadow_proxy: { per_shard: 2 } },
    '`monitoring.instance_type`': { monitoring: { instance_type: 't4g.large' } },
    '`monitoring.data`': { monitoring: { data } },
    '`monitoring.emails`': { monitoring: { emails: ['oncall@example.com'] } },
    '`monitoring.alerts_to`': { monitoring: { alerts_to: { mail: { to: '10.0.5.25/32', ports: [587] } } } },
    '`loadgen.instance_type`': { loadgen: { hosts: 1, instance_type: 'c7g.2xlarge' } },
    '`loadgen.hosts`: 0': { loadgen: { hosts: 0 } },
    '`replaceable`': { replaceable: ['keydb-0-2'] },
    '`replace`': { replace: { 'keydb-0-2': 1 } },
    '`protect`': { protect: false },
    '`subnet_ids`: one added': { subnet_ids: ['subnet-0a', 'subnet-0b', 'subnet-0c'] },
    '`subnet_ids`: other order': turned,
    '`subnet_ids`: other members': { subnet_ids: ['subnet-0a', 'subnet-0c'] },
    '`vpc_id`': { vpc_id: 'vpc-0b' },
    "`plan_file`: the plan's `name`": renamed,
    '`plan_file`: name of a target': otherTarget,
    '`plan_file`: name of a shard': otherShard,
    '`plan_file`: a target more': moreTargets,
    '`plan_file`: address of a source': otherSource,
    '`zone.name`': { zone: { name: 'other.internal' } },
    '`zone.id`': { zone: { name: 'cache.internal', id: 'Z0123' } },
    '`names`: `to`': { names: { checkout: { shard: 'cache-0', to: 'source' } } },
    '`names_via`': { names_via: 'nlb' },
    '`client_security_group_ids`': { client_security_group_ids: ['sg-0bbb'] },
    '`sources`: `version`, `memory_bytes`': {
      sources: { ...(VARIABLES.sources as object), 'cache-1': { version: '6.0', memory_bytes: 536870912 } },
    },
    '`source_client_security_group_ids`': { source_client_security_group_ids: ['sg-0ccc'] },
    '`source_secrets`': {
      source_secrets: { 'source-proxy': 'arn:aws:secretsmanager:eu-central-1:123456789012:secret:x' },
    },
    '`source_secret_kms_key_arns`': { source_secret_kms_key_arns: ['arn:aws:kms:eu-central-1:123456789012:key/s'] },
    '`passwords.rotation`: a second generation': {
      passwords: { rotation: { 'keydb-app': { use: '1', accept: ['1', '2'] } } },
    },
    '`passwords.in_state`': { passwords: { in_state: ['all'] } },
    '`passwords.generate`': { passwords: { generate: false } },
    '`passwords.store`': { passwords: { store: 'ssm' } },
    '`bucket_name`': { bucket_name: 'other-reports' },
    '`transfer_bucket_name`': { transfer_bucket_name: 'other-transfer' },
    '`keep_backups_days`': { keep_backups_days: 90 },
    '`ports`': { ports: { redis_exporter: 9122 } },
    '`internet`': { internet: '10.0.0.0/8' },
    '`allow_single_zone`': { allow_single_zone: true },
    '`prices`': { prices: { gib_month: 0.1 } },
  };
  const byLoadBalancer: Readonly<Record<string, Variables>> = {
    '`names`: `to`, with a load balancer': { names: { checkout: { shard: 'cache-0', to: 'source' } } },
    '`names`: `port`, with a load balancer': { names: { checkout: { shard: 'cache-0', to: 'proxy', port: 6400 } } },
    '`subnet_ids`: one added, with a load balancer': { subnet_ids: ['subnet-0a', 'subnet-0b', 'subnet-0c'] },
  };
  const threeNodes: Readonly<Record<string, Variables>> = {
    '`keydb.nodes_per_target`: fewer': { keydb: { nodes_per_target: 2 } },
  };
  const replaceable: Readonly<Record<string, Variables>> = {
    '`subnet_ids`: other members, hosts in `replaceable`': { subnet_ids: ['subnet-0a', 'subnet-0c'] },
    '`plan_file`: name of a target, hosts in `replaceable`': otherTarget,
    '`replace`, with another `keydb.spread`': { keydb: { spread: false }, replace: { 'keydb-0-2': 1 } },
  };
  const unprotected: Readonly<Record<string, Variables>> = {
    "`plan_file`: the plan's `name`, without `protect`": renamed,
  };
  const cluster: Readonly<Record<string, Variables>> = {
    '`cluster.target`: a master more': { cluster: { ...CLUSTER, target: { ...CLUSTER.target, 'keydb-3': '' } } },
    '`cluster.clients_reach_keydb`': { cluster: { ...CLUSTER, clients_reach_keydb: true } },
  };
  return Object.entries({
    'names by DNS': byDns,
    'names by a load balancer': byLoadBalancer,
    'three nodes for each target': threeNodes,
    'all hosts replaceable': replaceable,
    'nothing protected': unprotected,
    'a cluster': cluster,
  } satisfies Record<Before, Readonly<Record<string, Variables>>>).flatMap(([before, changes]) =>
    Object.entries(changes).map(([change, after]) => ({
      change,
      before: before as Before,
      after: { ...BEFORE[before as Before], ...after },
    })),
  );
}
