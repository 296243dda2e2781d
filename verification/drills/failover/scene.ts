/** Three KeyDB hosts under Sentinel, and one with clients: the inventory as terraform/README.md describes it. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Host } from '../../rehearsal/hosts/hosts.js';
import { sha256, writeSshConfig, type Scene, type Ssh } from '../../rehearsal/scene.js';

export const NODES = ['keydb-0-1', 'keydb-0-2', 'keydb-0-3'] as const;
/** Where applications run: HAProxy beside them finds the writer, as on the host of a proxy. */
export const CLIENT = 'client';
export const TARGET = 'keydb-0';
export const PORTS = { keydb: 6390, writer: 6379, any: 6380, haproxy: 8404, redis_exporter: 9121, sentinel: 26379 };

const SECRETS = ['keydb-admin', 'keydb-replication', 'keydb-proxy', 'keydb-exporter', 'keydb-haproxy', 'keydb-sentinel', 'keydb-app']; // prettier-ignore

/**
 * @param strict whether a primary without a replica in step refuses writes, and each write waits for the disk
 */
export function writeScene(directory: string, hosts: readonly Host[], ssh: Ssh, keydb: string, strict: boolean): Scene {
  const secrets = new Map<string, string>(SECRETS.map((name) => [name, randomBytes(18).toString('hex')]));
  const put = (name: string, content: unknown): string => {
    writeFileSync(join(directory, name), stringify(content), { mode: 0o600 });
    return join(directory, name);
  };
  const host = (name: string, more: object): [string, object] => {
    const { address } = hosts.find((each) => each.name === name)!;
    return [name, { ansible_host: address, infra_address: address, ...more }];
  };
  const inventory = {
    all: {
      vars: {
        ansible_user: 'root',
        ansible_ssh_private_key_file: ssh.key,
        ansible_ssh_common_args: ssh.options.join(' '),
        infra_migration: 'drill',
        infra_ports: PORTS,
        infra_targets: {
          [TARGET]: {
            name: TARGET,
            writer_port: PORTS.writer,
            any_port: PORTS.any,
            nodes: NODES,
            primary: NODES[0],
            pinned: false,
            shards: ['cache-0'],
          },
        },
        infra_sources: {},
        host_tuning_sysctl_enabled: false,
        host_tuning_thp_enabled: false,
        haproxy_maxconn: 1_000,
        keydb_install_method: 'binary',
        keydb_binary_src: keydb,
        keydb_binary_checksum: sha256(keydb),
        // The preflight asks for it, and no Node is installed.
        migration_kit_node_method: 'binary',
        migration_kit_node_src: process.execPath,
        migration_kit_node_checksum: sha256(process.execPath),
        ...(strict ? { keydb_min_replicas_to_write: 1, keydb_appendonly: true, keydb_appendfsync: 'always' } : {}),
      },
      children: {
        keydb: {
          hosts: Object.fromEntries(
            NODES.map((name, i) =>
              host(name, { infra_target: TARGET, infra_initial_role: i === 0 ? 'primary' : 'replica' }),
            ),
          ),
        },
        sentinel: { children: { keydb: {} } },
        haproxy: { children: { keydb: {} }, hosts: { [CLIENT]: {} } },
        shadow_proxy: { hosts: Object.fromEntries([host(CLIENT, { infra_shard: 'cache-0' })]) },
      },
    },
  };
  return {
    sshConfig: writeSshConfig(directory, hosts, ssh),
    hosts: hosts.map(({ name }) => name),
    secret: (name) => secrets.get(name)!,
    inventory: put('inventory.yml', inventory),
    plan: put('migration.yaml', { version: 1, name: 'drill', shards: [], workloads: [] }),
    passwords: put('passwords.yml', {
      passwords: Object.fromEntries([...secrets].map(([name, value]) => [name, { use: value, accept: [value] }])),
    }),
  };
}
