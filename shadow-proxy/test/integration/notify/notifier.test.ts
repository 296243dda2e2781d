/**
 * What happens in a real shard reaches real receivers: webhooks over HTTP, and an Alertmanager.
 *
 * Needs real sockets: webhooks over HTTP, a receiver that is down, and a real Alertmanager.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { freePort } from '../../../src/local/port.js';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { Webhook } from 'standardwebhooks';
import { Notifier } from '../../../src/notify/notifier.js';
import type { Shard } from '../../../src/shard/contract.js';
import { launch } from '../../../src/shard/launch.js';
import { onPath } from '../../../src/local/program.js';
import { aReceiver, startReceiver, type HttpReceiver } from '../../support/notices.js';
import { scratch } from '../../support/plans.js';
import { withRig } from '../../support/rig.js';
import { until } from '../../support/shard.js';

const ALERTMANAGER = 'prometheus-alertmanager';
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const logger = pino({ level: 'silent' });

interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly status: { readonly state: string };
}

/** Null, with a line, where it is not installed. */
async function startAlertmanager(t: TestContext): Promise<{ url: string; alerts(): Promise<Alert[]> } | null> {
  if (onPath(ALERTMANAGER) === null) {
    t.diagnostic(`NOT TESTED: ${ALERTMANAGER} is not on the PATH`);
    return null;
  }
  const directory = scratch(t);
  const config = join(directory, 'alertmanager.yml');
  writeFileSync(config, 'route: { receiver: none }\nreceivers: [{ name: none }]\n');
  const port = await freePort();
  const child = spawn(
    ALERTMANAGER,
    [
      `--config.file=${config}`,
      `--storage.path=${directory}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--cluster.listen-address=',
    ],
    { stdio: 'ignore' },
  );
  t.after(() => child.kill('SIGKILL'));
  const url = `http://127.0.0.1:${port}`;
  await until(() =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return { url, alerts: async () => (await (await fetch(`${url}/api/v2/alerts`)).json()) as Alert[] };
}

/** What came, as `type: summary`, each verified by the library of Standard Webhooks. */
const said = ({ received }: HttpReceiver): string[] =>
  received.map(({ text, headers }) => {
    const { type, data } = new Webhook(SECRET).verify(text, headers as Record<string, string>) as {
      type: string;
      data: { summary: string };
    };
    return `${type}: ${data.summary}`;
  });

test('stage changes, mismatches, an outage and a failover reach a webhook and an Alertmanager, and a dead receiver holds nothing up', async (t) => {
  const receiver = await startReceiver(t);
  const alertmanager = await startAlertmanager(t);
  const notify = [
    aReceiver({ name: 'dead', url: `http://127.0.0.1:${await freePort()}` }),
    aReceiver({ name: 'ops', url: receiver.url, secret: SECRET }),
    ...(alertmanager === null
      ? []
      : [aReceiver({ name: 'am', kind: 'alertmanager', url: alertmanager.url, secret: null })]),
  ];
  let started: Shard | null = null;
  const notifier = new Notifier(
    { name: 'checkout', notify },
    { scrape: () => (started ? [started.scrape()] : []), logger, checkMs: 25 },
  );
  t.after(() => notifier.close());
  const options = {
    default: { stage: 'dualwrite' },
    alike: true,
    failover: 'automatic',
    limits: { downAfterMs: 500 },
    recorded: (event: Parameters<Notifier['recorded']>[1]) => notifier.recorded('test', event),
  } as const;
  await withRig(options, async ({ shard: { shard, settled }, source, target, client: connect }) => {
    started = shard;
    const client = connect();
    await client.set('k', 'right');
    await settled();
    await shard.changeStage({ workload: 'default', stage: 'shadow', note: { by: 'ada', reason: 'copied' } });
    await until(() => said(receiver).includes('stage.once: Shard test: default dualwrite → shadow, by ada: copied'));

    const direct = new Redis({ port: target.port });
    await direct.set('k', 'wrong');
    direct.disconnect();
    await client.get('k');
    await until(() =>
      said(receiver).some((line) => line.startsWith('mismatch.firing: 1 mismatch in workload default')),
    );
    if (alertmanager !== null) {
      await until(async () => (await alertmanager.alerts()).some(({ labels }) => labels.alertname === 'ProxyMismatch'));
      const found = (await alertmanager.alerts()).find(({ labels }) => labels.alertname === 'ProxyMismatch')!;
      assert.deepEqual(found.labels, {
        alertname: 'ProxyMismatch',
        severity: 'critical',
        migration: 'checkout',
        shard: 'test',
        workload: 'default',
      });
      assert.match(found.annotations.summary, /^1 mismatch in workload default \(shadow\)/);
    }

    await settled();
    client.on('error', () => undefined);
    await source.stop();
    await until(() => said(receiver).some((line) => line.startsWith('failover.once: ')));
    // An outage that a failover ends at once may lie between two looks. Nothing takes over from this one.
    await target.kill('SIGKILL');
    const hasSaid = (start: string) => (): boolean => said(receiver).some((line) => line.startsWith(start));
    await until(hasSaid('outage.firing: The target of shard test is down'));
    await target.start();
    await until(hasSaid('outage.resolved: '));
    await until(() => notifier.receivers[1].sent === receiver.received.length);
    const [dead] = notifier.receivers;
    assert.ok(dead.failedAttempts > 0 && dead.sent === 0 && dead.queued > 0);
  });
});

test('a standby that takes over says so', async (t) => {
  const receiver = await startReceiver(t);
  const notifier = new Notifier(
    { name: 'checkout', notify: [aReceiver({ url: receiver.url, secret: SECRET })] },
    { scrape: () => [], logger },
  );
  t.after(() => notifier.close());
  await withRig({ alike: true, stateDir: scratch(t) }, async ({ shard }) => {
    const taking = launch(shard.plan, shard.plan.shards[0], logger, {
      standby: true,
      recorded: (event) => notifier.recorded('test', event),
    });
    await until(() => shard.shard.ready());
    // Long enough to have seen who serves.
    await new Promise((resolve) => setTimeout(resolve, 400));
    await shard.stop();
    const launched = await taking;
    await until(() => receiver.received.length > 0);
    await launched.stop();
    assert.match(
      said(receiver).join('\n'),
      /^takeover\.once: Shard test: process \w+ serves the shard: it took over from /,
    );
  });
});
