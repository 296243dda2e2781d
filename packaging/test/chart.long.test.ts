/**
 * The two pods of a shard, on this host and without Kubernetes, with what the chart renders.
 *
 * Needs real processes: the two pods of a shard, as processes with what the chart renders.
 */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '../../shadow-proxy/src/local/port.js';
import { Redis } from 'ioredis';
import { parseAllDocuments } from 'yaml';
import { run } from '../../verification/rehearsal/run.js';
import { Program } from '../../shadow-proxy/test/integration/cli/process.js';
import { scratch } from '../../shadow-proxy/test/support/plans.js';
import { withServers } from '../../shadow-proxy/test/support/servers.js';
import { until } from '../../shadow-proxy/test/support/shard.js';
import { ROOT } from '../npm/pack.js';
import { missing, toolAt } from '../../shadow-proxy/test/support/needs.js';

interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data: { readonly 'migration.yaml': string };
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly {
          readonly args: readonly string[];
          readonly readinessProbe: { readonly httpGet: { readonly path: string } };
        }[];
      };
    };
  };
}

test(
  'the pods of a shard: one serves and is ready, the other takes over its stages when it is stopped',
  { skip: await missing('helm') },
  async (t) => {
    const values = join(ROOT, 'packaging/test/chart/one-shard.values.yaml');
    const { stdout } = await run([
      toolAt('helm')!,
      'template',
      'shadow-proxy',
      join(ROOT, 'charts/shadow-proxy'),
      '--kube-version=1.33.0',
      '--values',
      values,
    ]);
    const objects = parseAllDocuments(stdout).map((document) => document.toJS() as Rendered);
    const of = (kind: string): Rendered => objects.find((object) => object.kind === kind)!;
    const {
      terminationGracePeriodSeconds: graceSeconds,
      containers: [container],
    } = of('StatefulSet').spec.template.spec;

    await withServers(async ({ source, target }) => {
      const [port, ...admins] = [await freePort(), await freePort(), await freePort()];
      const ready = (pod: number): Promise<boolean> =>
        fetch(`http://127.0.0.1:${admins[pod]}${container.readinessProbe.httpGet.path}`).then(
          ({ ok }) => ok,
          () => false,
        );
      /** A pod has its own address and volume. */
      const start = (pod: number): Program => {
        const directory = scratch(t, { token: 'secret' });
        mkdirSync(join(directory, 'volume'));
        const here = (text: string): string =>
          text
            .replaceAll(
              /http:\/\/shadow-proxy-cache-0-(\d)\.shadow-proxy-cache-0-pods:9400/g,
              (_, n: string) => `http://127.0.0.1:${admins[Number(n)]}`,
            )
            .replace('0.0.0.0:9400', `0.0.0.0:${admins[pod]}`)
            .replace('0.0.0.0:6400', `127.0.0.1:${port}`)
            .replace(/redis:\S+10\.0\.0\.11:6379/, source.url)
            .replace(/redis:\S+10\.0\.1\.11:6379/, target.url)
            .replace('/run/secrets/shadow-proxy-admin', directory)
            .replace('/var/lib/shadow-proxy', join(directory, 'volume'))
            .replace('/etc/shadow-proxy', directory);
        writeFileSync(join(directory, 'migration.yaml'), here(of('ConfigMap').data['migration.yaml']));
        return new Program(t, 'shadow-proxy', container.args.map(here));
      };
      const first = start(0);
      await until(() => ready(0));
      const second = start(1);
      await second.prints(/"standing by"/);
      assert.deepEqual(await Promise.all([ready(0), ready(1)]), [true, false]);
      const moved = await fetch(`http://127.0.0.1:${admins[0]}/api/promote`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer secret' },
        body: JSON.stringify({ workload: 'sessions', to: 'dualwrite', force: true, reason: 'the test' }),
      });
      assert.equal(moved.status, 200);
      const client = new Redis(port, { retryStrategy: () => 50 });
      client.on('error', () => undefined);
      t.after(() => client.disconnect());
      await client.set('session:1', 'value');

      const began = performance.now();
      first.signal('SIGTERM');
      assert.equal(await first.exit(graceSeconds * 1000), 0, first.stdout);
      await until(() => ready(1), 5_000);
      t.diagnostic(`handed over in ${Math.round(performance.now() - began)} ms`);
      await client.set('session:2', 'value');
      const direct = new Redis(target.port);
      direct.on('error', () => undefined);
      t.after(() => direct.disconnect());
      await until(async () => (await direct.mget('session:1', 'session:2')).every((value) => value === 'value'));
      // A pod that starts again, with its own volume or an empty one, is the standby.
      await start(0).prints(/"standing by"/);
    });
  },
);
