/**
 * Cluster mode: which node has which slots, and what a node answers to commands on keys of others. Source: cluster.c
 * of Redis 7.0, `getNodeByQuery` and `clusterGenNodesDescription`.
 */
import type { ClusterNode, ClusterView } from './cluster-view.js';
import { keysOf } from './command-table.js';
import { array, bulk, bulks, integer, Refusal } from './reply.js';
import { slotOf, SLOTS } from './slots.js';
import type { Client, Command, Run, State } from './state.js';
import { container } from './subcommand.js';

/** Refuses a command whose keys this node does not have. An EXEC that gets it discards its transaction. */
export class Redirection extends Refusal {}

const CROSS_SLOT = new Redirection("CROSSSLOT Keys in request don't hash to the same slot");
/** Commands of clusters get it from a server without cluster mode. */
export const DISABLED = new Refusal('ERR This instance has cluster support disabled');

interface Called {
  readonly command: Command;
  readonly args: readonly string[];
}

const isIn =
  (slot: number) =>
  ({ slots }: ClusterNode): boolean =>
    slots.some(([first, last]) => first <= slot && slot <= last);

/** The slots of the keys that the command names. */
function slotsOf(command: Command, args: readonly string[]): ReadonlySet<number> {
  return new Set(keysOf(command, args).map(({ index }) => slotOf(args[index])));
}

/** Why the client must ask another node, or use keys of one slot; null where the node may run the command. */
export function redirection(client: Client, command: Command, args: readonly string[]): Redirection | null {
  const view = client.server.cluster;
  if (view === null) return null;
  const isExec = command.name === 'exec';
  const run: readonly Called[] = isExec && client.multi !== null ? client.multi : [{ command, args }];
  const slots = new Set(run.flatMap((each) => [...slotsOf(each.command, each.args)]));
  if (slots.size === 0) return null;
  const [slot, ...others] = slots;
  const owner = view.nodes.find(isIn(slot));
  // KeyDB takes keys of several slots that one node has, unless the first of these slots is being moved.
  const isTogether =
    client.server.engine === 'keydb' &&
    !view.leaving.has(slot) &&
    others.every((each) => owner !== undefined && isIn(each)(owner));
  if (others.length > 0 && !isTogether) return CROSS_SLOT;
  if (owner === undefined) return new Redirection('CLUSTERDOWN Hash slot not served');
  if (owner.id === view.id) return leftFor(client, view, slot, run);
  const mine = view.nodes.find(({ id }) => id === view.id);
  const isRead = run.every((each) => !each.command.isWrite);
  if (client.readsReplica && isRead && mine?.masterId === owner.id) return null;
  return new Redirection(`MOVED ${slot} ${owner.host}:${owner.port}`);
}

/** Keys of a slot that is being moved may be at the other node. KeyDB asks there if any key is missing. */
function leftFor({ server }: Client, view: ClusterView, slot: number, run: readonly Called[]): Redirection | null {
  const to = view.leaving.get(slot);
  if (to === undefined) return null;
  const keys = run.flatMap(({ command, args }) => keysOf(command, args).map(({ index }) => args[index]));
  const [{ keys: held }] = server.databases;
  const missing = keys.filter((key) => !held.has(key));
  if (missing.length === 0) return null;
  if (server.engine === 'redis' && missing.length < keys.length)
    return new Redirection('TRYAGAIN Multiple keys request during rehashing of slot');
  return new Redirection(`ASK ${slot} ${to.host}:${to.port}`);
}

/** Refuses a command that a script calls, where the node would redirect it. */
export function refusedToScript(client: Client, command: Command, args: readonly string[]): Refusal | null {
  if (redirection(client, command, args) === null) return null;
  const text = 'cript attempted to access a non local key in a cluster node';
  return new Refusal(client.server.engine === 'redis' ? `ERR S${text}` : `@user_script: 1: Lua s${text}`);
}

/** @throws {Refusal} in cluster mode, which has database 0 alone */
export function refuseInCluster({ cluster }: State, what: string): void {
  if (cluster !== null) throw new Refusal(`ERR ${what} not allowed in cluster mode`);
}

const endOf = ({ host, port, id }: ClusterNode): string => array([bulk(host), integer(port), bulk(id), array([])]);

function slotsReply({ nodes }: ClusterView): string {
  const ranges = nodes.flatMap((master) => {
    const replicas = nodes.filter(({ masterId }) => masterId === master.id);
    return master.slots.map(([first, last]) =>
      array([integer(first), integer(last), ...[master, ...replicas].map(endOf)]),
    );
  });
  return array(ranges);
}

function nodesText({ id: own, nodes, leaving }: ClusterView): string {
  return nodes
    .map(({ id, host, port, masterId, slots }) => {
      const flags = `${id === own ? 'myself,' : ''}${masterId === null ? 'master' : 'slave'}`;
      const ranges = slots.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`));
      const moving = id === own ? [...leaving].map(([slot, to]) => `[${slot}->-${to.id}]`) : [];
      const place = `${host}:${port}@${port + 10_000}`;
      return [id, place, flags, masterId ?? '-', 0, 0, 1, 'connected', ...ranges, ...moving].join(' ');
    })
    .map((line) => `${line}\n`)
    .join('');
}

const inCluster =
  (answer: (view: ClusterView, client: Client, args: readonly string[]) => string): Run =>
  (client, args) => {
    const { cluster } = client.server;
    if (cluster === null) throw DISABLED;
    return answer(cluster, client, args);
  };

/** Names of the server's keys in the slot. */
export const keysIn = ({ databases: [{ keys }] }: State, slot: number): string[] =>
  [...keys.keys()].filter((key) => slotOf(key) === slot);

function slotArgument(text: string): number {
  const slot = Number(text);
  if (!(slot >= 0 && slot < SLOTS)) throw new Refusal('ERR Invalid slot');
  return slot;
}

const cluster = container({
  slots: inCluster(slotsReply),
  nodes: inCluster((view) => bulk(nodesText(view))),
  myid: inCluster(({ id }) => bulk(id)),
  info: inCluster(({ nodes }) => {
    const known = [
      ['cluster_state', 'ok'],
      ['cluster_slots_assigned', SLOTS],
      ['cluster_known_nodes', nodes.length],
      ['cluster_size', nodes.filter(({ slots }) => slots.length > 0).length],
    ];
    return bulk(known.map(([name, value]) => `${name}:${value}\r\n`).join(''));
  }),
  keyslot: inCluster((_view, _client, args) => integer(slotOf(args[2]))),
  countkeysinslot: inCluster((_view, client, args) => integer(keysIn(client.server, slotArgument(args[2])).length)),
  getkeysinslot: inCluster((_view, client, args) =>
    bulks(keysIn(client.server, slotArgument(args[2])).slice(0, Number(args[3]))),
  ),
});

export const CLUSTER_COMMANDS: Readonly<Record<string, Run>> = { cluster };
