/** What happens to the primary of a target, and how it ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Host, Hosts } from '../../rehearsal/hosts/hosts.js';
import { run } from '../../rehearsal/run.js';

export interface Field {
  readonly hosts: Hosts;
  /** The nodes of the target. */
  readonly nodes: readonly Host[];
}

/** How long a fault lasts that does not end by itself: longer than a failover. */
const FAULT_MS = 12_000;

export interface Fault {
  readonly name: string;
  readonly says: string;
  /** When a replica must be promoted for clients to go on. With an AOF, a primary that is back at once is it again. */
  readonly promotes: 'always' | 'without AOF' | 'perhaps';
  /** @param n number of the round: variants take turns */
  play(field: Field, primary: Host, n: number): Promise<void>;
}

const on = (field: Field, host: Host, command: string): Promise<unknown> => field.hosts.ssh(host.name, command);

export const FAULTS: readonly Fault[] = [
  {
    name: 'kill',
    says: 'SIGKILL; systemd starts it again after 2 s',
    promotes: 'without AOF',
    play: async (field, primary) => {
      await on(field, primary, 'systemctl kill --kill-whom=main --signal=KILL keydb');
      await sleep(FAULT_MS);
    },
  },
  {
    name: 'stop',
    says: 'systemctl stop, and start 12 s later',
    promotes: 'always',
    play: async (field, primary) => {
      await on(field, primary, 'systemctl stop keydb');
      await sleep(FAULT_MS);
      await on(field, primary, 'systemctl start --no-block keydb');
    },
  },
  {
    name: 'power-off',
    says: 'every process of its host is killed at once, its Sentinel too; it boots 12 s later',
    promotes: 'always',
    play: async (field, primary) => {
      await field.hosts.powerOff(primary.name);
      await sleep(FAULT_MS);
      await field.hosts.powerOn(primary.name);
    },
  },
  {
    name: 'cut',
    says: 'for 12 s its packets do not leave, or do not arrive, or both (in turns); clients on its host go on',
    promotes: 'always',
    play: async (field, primary, n) => {
      const way = (['both', 'out', 'in'] as const)[n % 3];
      await cut(field, primary, way, true);
      await sleep(FAULT_MS);
      await cut(field, primary, way, false);
    },
  },
  {
    name: 'return',
    says: 'its process is held for 12 s (SIGSTOP), and goes on with its old connections, as the primary that it was',
    promotes: 'always',
    play: async (field, primary) => {
      await on(field, primary, 'systemctl kill --kill-whom=main --signal=STOP keydb');
      await sleep(FAULT_MS);
      await on(field, primary, 'systemctl kill --kill-whom=main --signal=CONT keydb');
    },
  },
  {
    name: 'restart-all',
    says: 'all three nodes at once: systemctl restart, or all hosts lose power (in turns)',
    promotes: 'perhaps',
    play: async (field, _primary, n) => {
      if (n % 2 === 0) {
        await Promise.all(field.nodes.map((node) => on(field, node, 'systemctl restart --no-block keydb')));
      } else {
        await Promise.all(field.nodes.map(({ name }) => field.hosts.powerOff(name)));
        await Promise.all(field.nodes.map(({ name }) => field.hosts.powerOn(name)));
      }
    },
  },
];

/** A route that leads nowhere, in the namespace of the sender. */
async function cut({ hosts }: Field, of: Host, way: 'both' | 'out' | 'in', isCut: boolean): Promise<void> {
  const { network } = hosts;
  if (way === 'both') {
    await network.link(of.index, isCut ? 'down' : 'up');
    return;
  }
  const others = [network.gateway, ...hosts.all.filter(({ name }) => name !== of.name).map(({ address }) => address)];
  const verb = isCut ? 'add' : 'del';
  const route = (namespace: string, to: string): Promise<unknown> =>
    run(['ip', '-n', namespace, 'route', verb, 'blackhole', `${to}/32`]);
  if (way === 'out') {
    for (const address of others) await route(network.namespace(of.index), address);
  } else {
    await route(network.control, of.address);
    for (const { index, name } of hosts.all) if (name !== of.name) await route(network.namespace(index), of.address);
  }
}
