/**
 * The next process knows no key's TTL, however the last one ended: a write that keeps one is on both servers.
 *
 * Needs real processes: SIGKILL and SIGTERM between a TTL and the write that keeps it.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { freePort } from '../../../src/local/port.js';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import type { ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import { differences } from '../../support/keyspace.js';
import { scratch } from '../../support/plans.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { Program } from './process.js';

const ENDS: readonly {
  readonly name: string;
  readonly signal: NodeJS.Signals;
  readonly standby: boolean;
  readonly peer: boolean;
}[] = [
  { name: 'SIGTERM and another start', signal: 'SIGTERM', standby: false, peer: false },
  { name: 'SIGKILL with a standby', signal: 'SIGKILL', standby: true, peer: false },
  { name: 'SIGTERM with a standby that has a peer', signal: 'SIGTERM', standby: true, peer: true },
];
const KEYS = 40;
const LIFE_MS = 300;
/** Within the tolerance. */
const APART_MS = 45;

for (const { name, signal, standby, peer } of ENDS) {
  test(`a write that keeps a TTL is on both servers after ${name}`, async (t) => {
    await withServers(async ({ source, target }) => {
      const [port, ...adminPorts] = [await freePort(), await freePort(), await freePort()];
      const directory = scratch(t);
      const start = (process: 0 | 1, args: readonly string[] = []): Program => {
        const file = join(directory, `plan-${process}.yaml`);
        const plan = {
          version: 1,
          name: 'test',
          shards: [{ name: 'a', listen: `redis://127.0.0.1:${port}`, source: source.url, target: target.url }],
          workloads: [],
          default: { stage: 'shadow' },
          admin: { listen: `127.0.0.1:${adminPorts[process]}` },
          state: join(directory, peer ? `state-${process}` : 'state'),
        };
        writeFileSync(file, stringify(plan));
        return new Program(t, 'shadow-proxy', ['--plan', file, ...args]);
      };
      const direct = [source, target].map(({ url }) => new Redis(url));
      const proxy = new Redis({ port, lazyConnect: true });
      t.after(() => [...direct, proxy].forEach((client) => client.disconnect()));
      const keys = Array.from({ length: KEYS }, (_, n) => `k:${n}`);
      const first = start(0);
      await first.prints(/"listening"/);
      // The journal of the first process does not name them.
      for (const client of direct) await Promise.all(keys.map((key) => client.hset(key, 'a', 1)));
      const args = ['--standby', ...(peer ? ['--peer', `http://127.0.0.1:${adminPorts[0]}`] : [])];
      const waiting = standby ? start(1, args) : null;
      await waiting?.prints(/"standing by"/);
      first.signal(signal);
      await first.exit();
      const second = waiting ?? start(1);
      await second.prints(/"listening"/);
      const shard = async (): Promise<ShardSnapshot> => {
        const answer = await fetch(`http://127.0.0.1:${adminPorts[1]}/api/status`);
        return ((await answer.json()) as { shards: ShardSnapshot[] }).shards[0];
      };
      const clean = (): Promise<boolean> =>
        shard().then(
          ({ mirror, suspects, undecided, workloads }) =>
            mirror.queuedEffects + suspects.total + undecided === 0 && workloads.every((each) => each.clean),
          () => false,
        );
      await until(clean);

      const moment = Date.now() + LIFE_MS;
      // Of the even keys the source's ends first, of the odd ones the target's.
      await Promise.all(
        direct.flatMap((client, side) =>
          keys.map((key, n) => client.pexpireat(key, moment + (n % 2 === side ? 0 : APART_MS))),
        ),
      );
      await until(async () => (await direct[1].exists(keys)) < KEYS);
      await Promise.all(keys.map((key) => proxy.hset(key, 'b', 2)));
      // The keys end at the second server, too.
      await sleep(2 * APART_MS);
      await until(clean);
      assert.deepEqual(await differences(source, target), []);
      assert.deepEqual((await shard()).mismatches, {});
    });
  });
}
