/**
 * The commands that clients of a cluster send to its nodes, and the errors that redirect them. Every address is a
 * proxy's. The replies follow cluster.c of Redis 7.0.
 *
 *   keys of several slots ─▶ CROSSSLOT      slot of another shard ─▶ MOVED      slot that moves ─▶ TRYAGAIN
 */
import { isIP } from 'node:net';
import { titleOf } from '../../command/forms.js';
import { KeyList, keysOf, UNKNOWN_KEYS } from '../../command/keys.js';
import type { CommandSpec } from '../../command/table.js';
import { wordOf } from '../../resp/decode.js';
import { array, bulk, error, integer, map, OK } from '../../resp/encode.js';
import { countUnsupported } from '../../telemetry/workload-counters.js';
import { hashSlot, SLOTS } from '../../route/slot.js';
import { CROSSSLOT, type ClusterFace, type FaceListener, type FaceNode } from '../cluster-face.js';
import type { ClientState } from '../client-state.js';
import type { CommandContext } from '../context.js';
import { crossesDatabases, type CommandBytes } from '../routing.js';
import { answerSlot } from './owned.js';
import { plain } from './plain.js';

/** Commands that use another database. A cluster has only database 0. */
const LEAVES: Readonly<Record<string, string>> = {
  swapdb: 'ERR SWAPDB is not allowed in cluster mode',
  move: 'ERR MOVE is not allowed in cluster mode',
};
const NO_SLOT = -1;
const READ_ONLY = "READONLY You can't write against a read only replica.";

/** Answers the command at hand if it is not for this shard. */
export function redirected(context: CommandContext, spec: CommandSpec, face: ClusterFace): boolean {
  if (context.mustLogIn) return false;
  const left = LEAVES[spec.name] as string | undefined;
  if (left !== undefined) return refuse(context, left);
  const slot = slotOf(context, spec);
  const { viaReplica } = context.client;
  if (slot === NO_SLOT) return viaReplica && spec.write && refuse(context, READ_ONLY);
  if (slot === null) return refuse(context, CROSSSLOT);
  const redirect = face.redirect(slot);
  if (redirect !== null) return refuse(context, redirect);
  if (viaReplica && !isForReplica(context, spec)) return refuse(context, face.movedTo(face.own, slot));
  if (spec.name === 'copy' && crossesDatabases(context.parser))
    return refuse(context, 'ERR Copying to another database is not allowed in cluster mode');
  context.client.transaction?.entersSlot(slot);
  return false;
}

/** As in `getNodeByQuery` of a replica: it takes reads of a client that has sent READONLY, and sharded pub/sub. */
function isForReplica({ client }: CommandContext, spec: CommandSpec): boolean {
  if (SHARDED.has(spec.name)) return true;
  return client.readsReplica && !spec.write && (spec.handling !== 'script' || spec.readOnlyScript);
}

function refuse(context: CommandContext, message: string): true {
  context.refuse(message);
  return true;
}

/** The slot of the keys of the command at hand; null if they are in several slots, `NO_SLOT` without a key. */
function slotOf({ parser }: CommandContext, spec: CommandSpec): number | null {
  const { frame, argStart, argEnd, argc } = parser;
  const at = spec.singleKey;
  if (at > 0) return at < argc ? hashSlot(frame, argStart[at], argEnd[at]) : NO_SLOT;
  const count = SHARDED.has(spec.name) ? channelsOf(spec, argc) : knownKeysOf(parser, spec);
  let slot = NO_SLOT;
  for (let i = 0; i < count; i++) {
    const here = hashSlot(frame, argStart[KEYS.index[i]], argEnd[KEYS.index[i]]);
    if (slot !== NO_SLOT && slot !== here) return null;
    slot = here;
  }
  return slot;
}

/** Fills `KEYS` with the keys among the arguments. @returns how many; below 0 if they cannot be found */
function knownKeysOf({ frame, argStart, argEnd, argc }: CommandBytes, spec: CommandSpec): number {
  const count = keysOf(spec, frame, argStart, argEnd, argc, KEYS);
  return count === UNKNOWN_KEYS ? KEYS.known : count;
}

/** Fills `KEYS` with the channels of a sharded command. @returns how many */
function channelsOf({ name }: CommandSpec, argc: number): number {
  const count = name === 'spublish' ? Math.min(1, argc - 1) : argc - 1;
  for (let i = 0; i < count; i++) KEYS.index[i] = i + 1;
  return count;
}

/** Reused for each command. */
const KEYS = new KeyList();
/** Commands whose channels have slots, as keys do. */
const SHARDED: ReadonlySet<string> = new Set(['ssubscribe', 'sunsubscribe', 'spublish']);

type Answer = (face: ClusterFace, context: CommandContext) => Buffer;

/** The fields of a reply: names and values alternate. */
const fields = (protocol: 2 | 3, entries: readonly (readonly [string, Buffer])[]): Buffer =>
  map(
    entries.flatMap(([name, value]) => [bulk(name), value]),
    protocol,
  );

/** One entry for each range of slots: `[first, last, [host, port, id, []], …]`, the master before its replica. */
const slots: Answer = ({ nodes }) =>
  array(
    nodes
      .flatMap((node) => node.slots.map((range) => ({ node, range })))
      .sort((a, b) => a.range[0] - b.range[0])
      .map(({ node, range: [first, last] }) =>
        array([
          integer(first),
          integer(last),
          ...doorsOf(node).map(({ address: { host, port }, id }) =>
            array([bulk(host), integer(port), bulk(id), array([])]),
          ),
        ]),
      ),
  );

const doorsOf = (node: FaceNode): FaceListener[] => (node.replica === null ? [node] : [node, node.replica]);

const shards: Answer = ({ nodes, tls }, { client: { protocol } }) =>
  array(
    nodes.map((node) =>
      fields(protocol, [
        ['slots', array(node.slots.flatMap(([first, last]) => [integer(first), integer(last)]))],
        [
          'nodes',
          array(
            doorsOf(node).map(({ id, address: { host, port } }) =>
              fields(protocol, [
                ['id', bulk(id)],
                [tls ? 'tls-port' : 'port', integer(port)],
                ['ip', bulk(host)],
                ['endpoint', bulk(host)],
                ...(isIP(host) === 0 ? ([['hostname', bulk(host)]] as const) : []),
                ['role', bulk(id === node.id ? 'master' : 'replica')],
                ['replication-offset', integer(0)],
                ['health', bulk('online')],
              ]),
            ),
          ),
        ],
      ]),
    ),
  );

/** The listener that the client connected to. */
const listenerOf = ({ own }: ClusterFace, { client }: CommandContext): FaceListener =>
  client.viaReplica ? (own.replica ?? own) : own;

const lineOf = ({ id, address: { host, port } }: FaceListener, myself: FaceListener, rest: string): string =>
  `${id} ${host}:${port}@${port}${isIP(host) === 0 ? `,${host}` : ''} ${id === myself.id ? 'myself,' : ''}${rest}`;

const linesOf = (face: ClusterFace, myself: FaceListener): string[] =>
  face.nodes.flatMap((node, i) => {
    const ranges = node.slots.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(' ');
    return [lineOf(node, myself, `master - 0 0 ${i + 1} connected ${ranges}`), ...replicaLines(node, myself, i)];
  });

const replicaLines = ({ id, replica }: FaceNode, myself: FaceListener, i: number): string[] =>
  replica === null ? [] : [lineOf(replica, myself, `slave ${id} 0 0 ${i + 1} connected`)];

const nodes: Answer = (face, context) =>
  bulk(
    linesOf(face, listenerOf(face, context))
      .map((line) => `${line}\n`)
      .join(''),
  );

/** CLUSTER REPLICAS id. */
const replicas: Answer = (face, context) => {
  const asked = wordOf(context.argument(2));
  const i = face.nodes.findIndex(({ id }) => id === asked);
  if (i !== -1) return array(replicaLines(face.nodes[i], listenerOf(face, context), i).map((line) => bulk(line)));
  const isReplica = face.nodes.some(({ replica }) => replica?.id === asked);
  return error(isReplica ? 'ERR The specified node is not a master' : `ERR Unknown node ${asked}`);
};

const info: Answer = (face) => {
  const { nodes: all, assignedSlots } = face;
  const facts = {
    cluster_state: 'ok',
    cluster_slots_assigned: assignedSlots,
    cluster_slots_ok: assignedSlots,
    cluster_slots_pfail: 0,
    cluster_slots_fail: 0,
    cluster_known_nodes: all.flatMap(doorsOf).length,
    cluster_size: all.length,
    cluster_current_epoch: all.length,
    cluster_my_epoch: all.indexOf(face.own) + 1,
    // The proxies have no cluster bus.
    ...{ cluster_stats_messages_sent: 0, cluster_stats_messages_received: 0 },
    total_cluster_links_buffer_limit_exceeded: 0,
  };
  return bulk(
    Object.entries(facts)
      .map(([name, value]) => `${name}:${value}\r\n`)
      .join(''),
  );
};

const none: Answer = () => array([]);

const keyslot: Answer = (_face, context) => {
  const key = context.argument(2);
  return integer(hashSlot(key, 0, key.length));
};

const ANSWERS: Readonly<Record<string, Answer>> = {
  'cluster|slots': slots,
  'cluster|shards': shards,
  'cluster|nodes': nodes,
  'cluster|info': info,
  'cluster|myid': (face, context) => bulk(listenerOf(face, context).id),
  'cluster|keyslot': keyslot,
  'cluster|links': none,
  'cluster|replicas': replicas,
  'cluster|slaves': replicas,
  'cluster|count-failure-reports': () => integer(0),
  readonly: (_face, { client }) => readsReplica(client, true),
  readwrite: (_face, { client }) => readsReplica(client, false),
  asking: () => OK,
};

function readsReplica(client: ClientState, reads: boolean): Buffer {
  client.readOnly(reads);
  return OK;
}

/** Commands whose replies a client without login must not see. */
export const ANSWERED_BY_FACE: readonly string[] = [
  ...Object.keys(ANSWERS),
  'cluster|countkeysinslot',
  'cluster|getkeysinslot',
];

/** Commands that a cluster of KeyDB, or of a Redis before 7.0, lacks: clients that leave the proxy would miss them. */
const SINCE_70: ReadonlySet<string> = new Set(['cluster|shards', 'cluster|links']);

/** Answers CLUSTER, READONLY, READWRITE or ASKING. */
export function answerCluster(context: CommandContext): void {
  const { clients, client, parser } = context;
  const { face, sequencer } = clients;
  const { frame, argStart, argEnd, argc } = parser;
  const spec = sequencer.table.find(frame, argStart, argEnd, argc)!;
  if (face === null) return context.refuse('ERR This instance has cluster support disabled');
  if (spec.arity > 0 ? argc !== spec.arity : argc < -spec.arity)
    return context.refuse(`ERR wrong number of arguments for '${spec.name}' command`);
  if (SINCE_70.has(spec.name) && sequencer.servers.target.traits.isBefore70)
    countUnsupported(sequencer.counters.of(sequencer.router.default), titleOf(spec.name), 'target', false);
  const answer = ANSWERS[spec.name] as Answer | undefined;
  if (answer === undefined) return keysInSlot(context, spec, face);
  const reply = answer(face, context);
  if (client.transaction === null) context.reply(reply);
  else client.transaction.queueReply(reply);
}

/** COUNTKEYSINSLOT slot, GETKEYSINSLOT slot count. */
function keysInSlot(context: CommandContext, spec: CommandSpec, face: ClusterFace): void {
  if (context.client.transaction !== null)
    return context.refuse('ERR shadow-proxy: CLUSTER COUNTKEYSINSLOT and GETKEYSINSLOT inside MULTI are not supported');
  const [slot, limit] = [numberAt(context, 2), context.parser.argc > 3 ? numberAt(context, 3) : null];
  if (slot === null || slot >= SLOTS) return context.refuse('ERR Invalid slot');
  if (context.parser.argc > 3 && limit === null) return context.refuse('ERR Invalid number of keys');
  // As in Redis, a node counts the keys of its own slots only.
  if (!face.isMine(slot)) return context.reply(limit === null ? integer(0) : array([]));
  const { router, servers } = context.sequencer;
  if (servers[router.default.position.keylessRule.authority].identity?.mode === 'cluster') plain(context, spec);
  else answerSlot(context, slot, limit);
}

/** Null if the argument is not a whole number from 0 on. */
function numberAt(context: CommandContext, index: number): number | null {
  const text = wordOf(context.argument(index));
  return /^\d{1,9}$/.test(text) ? Number(text) : null;
}
