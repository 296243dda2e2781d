/**
 * Preloaded into the tests of node-redis: its own helper starts servers in containers; here it gets the nodes that run
 * already. Tests that need a server of another kind, or other settings, are skipped by that helper.
 */
import Module from 'node:module';
import { NODE_PORTS } from './nodes.js';

/** Settings that the cluster has, or that change nothing for a client. */
const HAS = ['--enable-debug-command', 'yes', '--save', ''];

const ports = process.env[NODE_PORTS]!.split(',').map(Number);
const spawnRedisCluster = (_: unknown, settings: readonly string[]): Promise<{ port: number }[]> | undefined =>
  settings.every((word) => HAS.includes(word)) ? Promise.resolve(ports.map((port) => ({ port }))) : undefined;
const none = (): undefined => undefined;

type Load = (request: string, parent: unknown, isMain: boolean) => object;
const loader = Module as unknown as { _load: Load };
const load = loader._load;
loader._load = (request, parent, isMain) => {
  const loaded = load(request, parent, isMain);
  if (!request.endsWith('/dockers')) return loaded;
  const others = Object.keys(loaded).filter((name) => name.startsWith('spawn'));
  return { ...loaded, ...Object.fromEntries(others.map((name) => [name, none])), spawnRedisCluster };
};
