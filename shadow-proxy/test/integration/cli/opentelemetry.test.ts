/**
 * A proxy with `opentelemetry` and `notify` in its plan: what its receivers get, and what a reload changes.
 *
 * Needs real sockets: what an OTLP receiver and a webhook get over HTTP from a daemon.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { AdminClient } from '../../../src/cli/admin-client.js';
import { startReceiver, type HttpReceiver } from '../../support/notices.js';
import { scratch } from '../../support/plans.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { runProgram } from './process.js';
import { planFor, start } from './running.js';

const has = ({ received }: HttpReceiver, path: string, text: RegExp): boolean =>
  received.some((each) => each.path === path && text.test(each.text));

test('a process sends traces and metrics, notifies, takes over a changed receiver, and logs no secret', async (t) => {
  const [otlp, first, second] = [await startReceiver(t), await startReceiver(t), await startReceiver(t)];
  otlp.answer = { status: 200, text: '{}' };
  first.answer = { status: 500, text: 'very-secret' };
  await withServers(async (servers) => {
    const directory = scratch(t, { secret: 'very-secret', headers: 'api-key: very-secret' });
    const plan = await planFor(servers, (each) => {
      each.workloads[0].stage = 'dualwrite';
      each.opentelemetry = { url: otlp.url, headersFile: 'headers', traceShare: 1, metricsMs: 200 };
      each.notify = [{ kind: 'webhook', url: first.url, secretFile: 'secret' }];
    });
    const running = await start(t, plan, directory);
    await running.connect().set('session:1', 'x');
    await until(() => has(otlp, '/v1/traces', /"SET"[^]*"dualwrite"|"dualwrite"[^]*"SET"/));
    await until(() => has(otlp, '/v1/metrics', /shadow_proxy_operations_total/));
    const admin = new AdminClient({ admin: running.admin });
    await admin.promote({ workload: 'sessions', to: 'shadow', force: true, reason: 'a change of stage' });
    await until(() => has(first, '/', /dualwrite → shadow/));
    running.reload((each) => (each.notify = [{ kind: 'webhook', name: 'new', url: second.url, secretFile: 'secret' }]));
    await running.daemon.prints(/the plan was reloaded/);
    await admin.rollback({ workload: 'sessions', to: 'dualwrite' });
    await until(() => has(second, '/', /shadow → dualwrite/));
    const metrics = await (await fetch(`${running.admin}/metrics`)).text();
    assert.match(metrics, /^shadow_proxy_notifications_sent_total\{receiver="new"\} 1$/m);
    running.daemon.signal('SIGTERM');
    assert.equal(await running.daemon.exit(), 0);
    const { stdout, stderr } = running.daemon;
    assert.match(stdout, /"receiver":"webhook","problem":"500 \*\*\*"/);
    assert.doesNotMatch(stdout + stderr + metrics, /very-secret/);
  });
});

test('where the packages are left out, the plan that needs them is refused with what to do', async (t) => {
  const hook = `import { register } from 'node:module';
    register('data:text/javascript,' + encodeURIComponent(\`export const resolve = (name, context, next) => {
      if (name.startsWith('@opentelemetry/')) throw new Error('Cannot find package ' + name);
      return next(name, context);
    };\`));`;
  await withServers(async (servers) => {
    const directory = scratch(t, { 'hook.mjs': hook });
    const plan = await planFor(servers, (each) => (each.opentelemetry = { url: 'http://127.0.0.1:4318' }));
    const file = join(directory, 'plan.json');
    writeFileSync(file, JSON.stringify(plan));
    const env = { NODE_OPTIONS: `--import ${join(directory, 'hook.mjs')}` };
    const refused = await runProgram(t, 'shadow-proxy', ['--plan', file], env);
    assert.equal(refused.code, 2, refused.stdout);
    assert.match(
      refused.stderr,
      /opentelemetry needs packages that are not installed \(.*\): install without --omit=optional/,
    );
    // Without it nothing of them is loaded.
    delete plan.opentelemetry;
    await (await start(t, plan, directory, [], env)).daemon.prints(/"listening"/);
  });
});
