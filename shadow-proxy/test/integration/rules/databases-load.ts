/**
 * Random commands in random databases, between servers that have different databases and refuse frames. A key may
 * never be in another database than the one in its name.
 */
import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LocalServer, ServerConfig } from '../../../src/local/servers.js';
import type { Argument } from '../../../src/resp/encode.js';
import { ask } from '../../support/jobs.js';
import { startOn, type Rig } from '../../support/rig.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import type { Wire } from '../../support/wire.js';

type Side = 'source' | 'target';
type Random = (below: number) => number;

/** A frame that one of the servers refuses to the proxy. */
const DENIALS = ['nothing', 'SELECT renamed', '-select', '-multi', '-hello', '-move -copy -swapdb', 'select by turns'];
/** What SELECT is called where it is renamed. */
const RENAMED = 'select-of-the-test';
const CLIENTS = 4;

/** The same sequence for the same seed. */
function randomOf(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

interface Setting {
  readonly databases: Readonly<Record<Side, number>>;
  /** What the mirror denies. */
  readonly denied: string;
  readonly stage: 'dualwrite' | 'shadow' | 'live';
  readonly swaps: boolean;
}

function settingOf(any: Random): Setting {
  const databases = { source: [2, 5, 16, 24][any(4)], target: [2, 5, 16, 24][any(4)] };
  const denied = DENIALS[any(DENIALS.length)];
  return { databases, denied, stage: (['dualwrite', 'shadow', 'live'] as const)[any(3)], swaps: any(4) === 0 };
}

const configOf = (databases: number, denied: string): ServerConfig => ({
  databases,
  user: [`kit on >pw ~* &* +@all ${denied.startsWith('-') ? denied : ''}`, 'default on nopass ~* &* +@all'],
  ...(denied === 'SELECT renamed' && { 'rename-command': `SELECT ${RENAMED}` }),
});

/** Loads servers that the seed chooses, for so many ms; asserts that no key is in a database that is not its own. */
export async function loadDatabases(seed: number, ms: number): Promise<string> {
  const any = randomOf(seed);
  const setting = settingOf(any);
  const { databases, denied, stage } = setting;
  const mirror: Side = stage === 'live' ? 'source' : 'target';
  const config = (side: Side): ServerConfig => configOf(databases[side], side === mirror ? denied : 'nothing');
  const about = JSON.stringify({ seed, ...setting });
  await withServers(
    async (servers) => {
      const asKit = (server: LocalServer): LocalServer =>
        Object.create(server, { url: { value: server.url.replace('://', '://kit:pw@') } }) as LocalServer;
      const [source, target] = [asKit(servers.source), asKit(servers.target)];
      const rig = await startOn({ source, target, default: { stage: stage === 'live' ? 'live' : 'off' } });
      try {
        await run(rig, setting, any, mirror, ms);
        await assertPlaced(rig, setting, mirror, about);
      } catch (problem) {
        (problem as Error).message += ` (${about})`;
        throw problem;
      } finally {
        await rig.stop();
      }
    },
    { source: { config: config('source') }, target: { config: config('target') } },
  );
  return about;
}

async function run(rig: Rig, setting: Setting, any: Random, mirror: Side, ms: number): Promise<void> {
  const authority = mirror === 'source' ? 'target' : 'source';
  const count = setting.databases[authority];
  const wires = await Promise.all(Array.from({ length: CLIENTS }, () => rig.wire()));
  const dbs = new Map<Wire, number>();
  for (const wire of wires) await select(wire, any(count), dbs);
  const stages = { dualwrite: ['dualwrite'], shadow: ['dualwrite', 'shadow'], live: [] } as const;
  for (const stage of stages[setting.stage]) await rig.shard.shard.changeStage({ workload: 'default', stage });
  const until = performance.now() + ms;
  await Promise.all([
    ...wires.map(async (wire) => {
      while (performance.now() < until) await step(wire, dbs, any, count, setting.swaps);
    }),
    operate(rig, setting, any, rig[mirror], until),
  ]);
}

async function select(wire: Wire, db: number, dbs: Map<Wire, number>): Promise<void> {
  const reply = await wire.ask('SELECT', db);
  if (reply === '+OK') dbs.set(wire, db);
  else assert.match(reply, /^-ERR shadow-proxy: SELECT is refused: the (source|target) lets the proxy into database/);
  if (!dbs.has(wire)) dbs.set(wire, 0);
}

/** Commands on keys whose names and values tell the database. */
function writes(any: Random, db: number): (readonly Argument[])[] {
  const own = `in${db}:${any(5)}`;
  return [
    ['SET', 'same', `${db}:${any(100)}`],
    ['SET', own, db],
    ['INCR', `in${db}:n`],
    ['RPUSH', `in${db}:l`, any(100)],
    ['EVAL', "return redis.call('SET', KEYS[1], ARGV[1])", 1, own, any(9)],
    ['EVAL', "return redis.call('RPUSH', KEYS[1], redis.call('TIME')[2])", 1, `in${db}:l`],
    ['GET', own],
    ['DEL', `in${db}:l`],
    ['SPOP', `in${db}:s`],
    ['SADD', `in${db}:s`, any(9)],
  ];
}

/** Keys that may be in any database. */
function travels(any: Random, count: number, swaps: boolean): (readonly Argument[])[] {
  const key = `go:${any(4)}`;
  return [
    ['SET', key, any(99)],
    ['MOVE', key, any(count)],
    ['COPY', key, `go:${any(4)}`, 'DB', any(count), 'REPLACE'],
    ...(swaps ? [['SWAPDB', any(count), any(count)]] : []),
  ];
}

async function step(wire: Wire, dbs: Map<Wire, number>, any: Random, count: number, swaps: boolean): Promise<void> {
  const pick = <T>(items: readonly T[]): T => items[any(items.length)];
  const db = dbs.get(wire)!;
  const what = any(10);
  if (what === 0) return select(wire, any(count), dbs);
  if (what === 1) return void (await wire.ask(...pick(travels(any, count, swaps))));
  if (what === 2) return void (await wire.ask('HELLO', pick([2, 3])));
  if (what > 4) {
    await wire.pipeline(Array.from({ length: 1 + any(4) }, () => pick(writes(any, db))));
    return;
  }
  const inside = any(count);
  const replies = await wire.pipeline([
    ['MULTI'],
    pick(writes(any, db)),
    ['SELECT', inside],
    pick(writes(any, inside)),
    ['EXEC'],
  ]);
  if (replies[4][0] === '*') dbs.set(wire, inside);
}

/** What goes on beside the clients: a user whose rights change, backfills and verifications. */
async function operate(rig: Rig, { denied }: Setting, any: Random, mirror: LocalServer, until: number): Promise<void> {
  const admin = rig.client({ of: mirror });
  for (let allowed = false; performance.now() < until; allowed = !allowed) {
    if (denied === 'select by turns')
      await admin.call('ACL', 'SETUSER', 'kit', ...(allowed ? ['+select', '+multi'] : ['-select', '-multi']));
    if (any(3) === 0 && rig.shard.snapshot().job?.state !== 'running') {
      const kind = (['backfill', 'verify'] as const)[any(2)];
      ask(rig, { kind, repair: kind === 'verify' });
    }
    await sleep(50);
  }
  if (denied !== 'SELECT renamed') await admin.call('ACL', 'SETUSER', 'kit', '+@all');
}

async function assertPlaced(
  rig: Rig,
  { databases, denied, swaps }: Setting,
  mirror: Side,
  about: string,
): Promise<void> {
  const reach = denied === 'SELECT renamed' ? 1 : Math.min(databases.source, databases.target);
  const selects = (side: Side): string => (side === mirror && denied === 'SELECT renamed' ? RENAMED : 'SELECT');
  const held = async (side: Side): Promise<Map<string, string>> => {
    const all = await contentsOf(rig[side], selects(side));
    if (!swaps) for (const id of all.keys()) assertInPlace(id, all.get(id)!, side);
    return new Map([...all].filter(([id]) => Number(id.split(' ')[0]) < reach));
  };
  let different: string[] = [];
  const areEqual = async (): Promise<boolean> => {
    const [source, target] = [await held('source'), await held('target')];
    const ids = new Set([...source.keys(), ...target.keys()]);
    different = [...ids].filter((id) => source.get(id) !== target.get(id));
    if (different.length === 0) return true;
    // What only the mirror has after a SWAPDB that it refused is kept, and listed, until an operator confirms.
    if (swaps && rig.shard.snapshot().job?.state !== 'running')
      ask(rig, { kind: 'verify', repair: true, deletes: 100_000, again: true });
    await sleep(100);
    return false;
  };
  // What a refused frame has left is a suspect, and repaired, in every database that both servers have.
  const left = (): string => {
    const { suspects, workloads, job, target } = rig.shard.snapshot();
    return JSON.stringify({
      different: different.slice(0, 5),
      suspects,
      workloads,
      job,
      refused: target.refusedDatabases,
    });
  };
  await until(areEqual, 30_000, left);
  assert.equal(rig.shard.snapshot().mirror.connected, true, about);
}

function assertInPlace(id: string, value: string, side: Side): void {
  const [db, key] = id.split(' ');
  if (key === 'same') assert.match(value, new RegExp(`^"${db}:`), `${id} on the ${side}`);
  else if (key.startsWith('in')) assert.equal(key.slice(2, key.indexOf(':')), db, `${id} on the ${side}`);
}

/** As `db key` and the value. */
async function contentsOf(server: LocalServer, select: string): Promise<Map<string, string>> {
  const client = new Redis({ host: '127.0.0.1', port: server.port, retryStrategy: () => null });
  const contents = new Map<string, string>();
  try {
    for (const [, db] of (await client.info('keyspace')).matchAll(/^db(\d+):/gm)) {
      await client.call(select, db);
      for (const key of await client.keys('*')) {
        const type = await client.type(key);
        const value =
          type === 'list' ? client.lrange(key, 0, -1) : type === 'set' ? client.smembers(key) : client.get(key);
        const found = await value;
        if (type !== 'none')
          contents.set(`${db} ${key}`, JSON.stringify(Array.isArray(found) && type === 'set' ? found.sort() : found));
      }
    }
    return contents;
  } finally {
    client.disconnect();
  }
}
