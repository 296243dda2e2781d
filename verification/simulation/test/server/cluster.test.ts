/**
 * Cluster mode: redirections, keys of several slots, a slot that is being moved; in a real cluster of two masters.
 *
 * Needs real servers: redirections of a real cluster, beside those of the model.
 */
import { test } from 'node:test';
import { askNode, startCluster } from '../../../../shadow-proxy/src/local/start-cluster.js';
import { nodesOf } from '../../../../shadow-proxy/src/upstream/slots.js';
import { text } from '../../../../shadow-proxy/src/resp/decode.js';
import { EVERY_COMMAND } from '../../../../shadow-proxy/test/support/servers.js';
import { needs } from '../../../../shadow-proxy/test/support/needs.js';
import type { ClusterNode } from '../../server/cluster-view.js';
import { ModelServer } from '../../server/server.js';
import { slotOf } from '../../server/slots.js';
import { Duel, ENGINES, WITHOUT_CYCLE, type Words } from './duel.js';
import { Random, seedOf } from './random.js';

/** Slots 3300 and 7365 are the first master's, 11298 is the second's. */
const TAGS = ['{b}', '{b}', '{c}', '{d}'];
const CONFIG = { redis: { 'enable-debug-command': 'yes' }, keydb: { ...EVERY_COMMAND.config, 'server-threads': 1 } };
const COUNT = 1_500;

function command(random: Random): Words {
  const key = (kind: string): string => `${kind}${random.below(2)}${random.pick(TAGS)}`;
  const [s, other, list] = [key('s'), key('s'), key('l')];
  return random.pick<() => Words>([
    () => ['SET', s, 'v'],
    () => ['GET', s],
    () => ['MSET', s, '1', other, '2'],
    () => ['MGET', s, other],
    () => ['DEL', s, other],
    () => ['RENAME', s, other],
    () => ['COPY', s, other, 'REPLACE', ...random.pick([[], [], ['DB', '1'], ['DB', '0']])],
    () => ['RPUSH', list, 'a', 'b'],
    () => ['LMOVE', list, key('l'), 'LEFT', 'RIGHT'],
    () => ['LPOP', list],
    () => ['BLPOP', list, '0.01'].slice(0, 1 + random.below(2)),
    () => ['EVAL', "return redis.call('GET', KEYS[1])", '1', s],
    () => [
      'EVAL',
      "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('RPUSH', KEYS[2], ARGV[1])",
      '2',
      s,
      list,
      'v',
    ],
    () => ['EVAL', 'return {KEYS[1], ARGV[1], 7}', '1', s, 'x'],
    () => ['MULTI'],
    () => ['EXEC'],
    () => ['DISCARD'],
    () => ['WATCH', s, ...random.pick([[], [other]])],
    () => ['SELECT', random.pick(['0', '1', '16', 'x'])],
    () => ['SWAPDB', '0', '1'],
    () => ['MOVE', s, '1'],
    () => ['CLUSTER', 'KEYSLOT', s],
    () => ['CLUSTER', 'COUNTKEYSINSLOT', String(slotOf(s))],
    () => ['CLUSTER', 'COUNTKEYSINSLOT', random.pick(['-1', '16384'])],
    () => ['PUBLISH', 'channel', 'text'],
    () => ['DBSIZE'],
    () => ['READONLY'],
    () => ['READWRITE'],
  ])();
}

for (const engine of ENGINES)
  test(`the model of ${engine} in cluster mode answers as the server does`, async (t) => {
    if (!(await needs(t, engine === 'redis' ? 'redis=7.0' : 'keydb'))) return;
    const cluster = await startCluster({ program: engine, masters: 2, config: CONFIG[engine] });
    try {
      const [first, second] = cluster.masters;
      const listed = nodesOf(text(await askNode(first, 'CLUSTER', 'NODES')));
      const nodes = listed.map(({ id, address, masterId, slots }): ClusterNode => ({
        ...address!,
        id,
        masterId,
        slots,
      }));
      const [own, other] = [first, second].map(({ port }) => nodes.find((node) => node.port === port)!);
      const seed = seedOf(57);
      const random = new Random(seed);
      const program = Array.from({ length: COUNT }, () => command(random));
      for (const leaving of [[], [slotOf('{b}')]]) {
        for (const slot of leaving) {
          await askNode(second, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', own.id);
          await askNode(first, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', other.id);
        }
        await new Duel(engine, first, () => {
          const model = new ModelServer(engine, WITHOUT_CYCLE, { config: { 'cluster-enabled': 'yes' } });
          model.cluster = { id: own.id, nodes, leaving: new Map(leaving.map((slot) => [slot, other])) };
          return model;
        }).fight(t, program, seed);
      }
    } finally {
      await cluster.stop();
    }
  });
