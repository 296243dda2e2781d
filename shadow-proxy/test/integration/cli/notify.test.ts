/**
 * `shadow-compare notify`: who is notified, and what each receiver answers to a test.
 *
 * Needs real sockets: what receivers get over HTTP, and the answers that are shown.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { freePort } from '../../../src/local/port.js';
import { stringify } from 'yaml';
import { startReceiver } from '../../support/notices.js';
import { scratch, smallPlan } from '../../support/plans.js';
import { runCommand } from './process.js';

test('notify lists the receivers, sends a test to each with --test, shows the answers, and no secret', async (t) => {
  const [hook, slack, dead] = [await startReceiver(t), await startReceiver(t), await freePort()];
  slack.answer = { status: 404, text: 'no_service' };
  const directory = scratch(t, {
    secret: 'very-secret\n',
    slack: `${slack.url}/services/T0/B0/very-secret\n`,
    key: 'very-secret',
  });
  const file = join(directory, 'plan.yaml');
  const ask = (notify: readonly object[], ...args: string[]): ReturnType<typeof runCommand> => {
    writeFileSync(file, stringify({ ...smallPlan(), notify }));
    return runCommand('notify', '--plan', file, ...args);
  };
  const notify = [
    { kind: 'webhook', name: 'ops', url: `${hook.url}/hook`, secretFile: 'secret', events: ['outage'] },
    { kind: 'slack', urlFile: 'slack' },
    { kind: 'pagerduty', url: `http://127.0.0.1:${dead}`, secretFile: 'key' },
  ];
  const listed = await ask(notify);
  assert.equal(listed.code, 0, listed.stderr);
  assert.match(listed.stdout, /ops[^]*outage[^]*\(webhook\)[^]*slack[^]*stage, guard, gate/);
  assert.equal(hook.received.length, 0, 'without --test nothing is sent');

  const tested = await ask(notify, '--test');
  assert.equal(tested.code, 1);
  assert.match(
    tested.stdout,
    /accepted: 200 ok[^]*NOT ACCEPTED: 404 no_service[^]*NOT ACCEPTED: connect[^]*ECONNREFUSED/,
  );
  assert.doesNotMatch(listed.stdout + tested.stdout + tested.stderr, /very-secret/);
  assert.deepEqual(
    hook.received.map(({ body }) => body.type),
    ['test.firing', 'test.resolved'],
  );

  const accepted = await ask([notify[0]], '--test', '--json');
  assert.equal(accepted.code, 0);
  assert.deepEqual(JSON.parse(accepted.stdout), [
    { receiver: 'ops', kind: 'webhook', address: hook.url, events: ['outage'], accepted: true, answer: '200 ok' },
  ]);
  const none = await ask([], '--test');
  assert.deepEqual([none.code, none.stdout], [1, 'The plan has no notify: nobody is notified\n']);
});
