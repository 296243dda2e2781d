/**
 * The metrics of redis_exporter that the rules use are those that the real exporter exports for a real Redis, a real
 * KeyDB and a replica, scraped as Ansible configures it.
 *
 * Needs real servers: INFO of both servers, as redis_exporter exports it.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { freePort } from '../../shadow-proxy/src/local/port.js';
import { startKeydb, startRedis } from '../../shadow-proxy/src/local/servers.js';
import { until } from '../../shadow-proxy/test/support/shard.js';
import { rules } from './files.js';
import { needs } from '../../shadow-proxy/test/support/needs.js';

const EXPORTER = 'prometheus-redis-exporter';

test('every metric of redis_exporter in a rule is exported for Redis, for KeyDB, and for a replica', async (t) => {
  if (!(await needs(t, EXPORTER, 'keydb'))) return;
  const named = new Set(
    rules().flatMap(({ expr }) => [...expr.matchAll(/(?<![\w:])redis_[a-z_]+/g)].map(([name]) => name)),
  );
  assert.ok(named.size > 4, [...named].join(' '));
  const port = await freePort();
  // As group_vars/monitoring.yml: no server of its own, and the login for those that it is asked for.
  const exporter = spawn(EXPORTER, ['--web.listen-address', `127.0.0.1:${port}`], {
    env: { ...process.env, REDIS_ADDR: '', REDIS_PASSWORD: 'secret' },
    stdio: 'ignore',
  });
  const servers = [
    await startRedis({ config: { requirepass: 'secret' } }),
    await startKeydb({ config: { requirepass: 'secret' } }),
  ];
  servers.push(
    await startKeydb({
      config: { requirepass: 'secret', masterauth: 'secret', replicaof: `127.0.0.1 ${servers[1].port}` },
    }),
  );
  try {
    const scrape = async (of: number): Promise<string> =>
      (await fetch(`http://127.0.0.1:${port}/scrape?target=redis://127.0.0.1:${servers[of].port}`)).text();
    await until(async () => /^redis_master_link_up\{.*\} 1$/m.test(await scrape(2).catch(() => '')), 30_000);
    for (const of of [0, 1, 2]) {
      const text = await scrape(of);
      assert.match(text, /^redis_up 1$/m);
      // Only a replica has a link to a master.
      for (const name of named)
        if (of === 2 || name !== 'redis_master_link_up') assert.match(text, new RegExp(`^${name}[ {]`, 'm'), name);
    }
  } finally {
    exporter.kill();
    await Promise.all(servers.map((server) => server.stop()));
  }
});
