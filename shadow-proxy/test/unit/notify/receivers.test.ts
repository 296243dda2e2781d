/** What each kind of receiver gets, by its own library or documentation. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import type { Notice } from '../../../src/notify/notice.js';
import { requestOf } from '../../../src/notify/receivers.js';
import type { ReceiverPlan } from '../../../src/plan/plan.js';
import { aNotice, aReceiver } from '../../support/notices.js';

const NOW = Date.now();
// eslint-disable-next-line @typescript-eslint/no-explicit-any
const bodyOf = (receiver: Partial<ReceiverPlan>, notice: Partial<Notice> = {}): any =>
  JSON.parse(requestOf(aNotice(notice), aReceiver(receiver), NOW).body);

describe('a webhook', () => {
  test('is signed as the library of Standard Webhooks verifies it, which refuses it changed or late', () => {
    const receiver = aReceiver();
    const { headers, body } = requestOf(aNotice(), receiver, NOW);
    const library = new Webhook(receiver.secret!);
    const { type, data } = library.verify(body, headers) as { type: string; data: Record<string, unknown> };
    assert.equal(type, 'mismatch.firing');
    assert.deepEqual(
      [data.migration, data.shard, data.workload, data.severity, data.details],
      ['checkout', 'cache-0', 'sessions', 'critical', { mismatches: 2 }],
    );
    assert.throws(() => library.verify(body.replace('critical', 'info'), headers), /No matching signature/);
    const old = requestOf(aNotice(), receiver, NOW - 10 * 60_000);
    assert.throws(() => library.verify(old.body, old.headers), /too old/);
  });

  test('has a secret of any form', () => {
    const { headers, body } = requestOf(aNotice(), aReceiver({ secret: 'a plain secret' }), NOW);
    const library = new Webhook('a plain secret', { format: 'raw' });
    assert.ok(library.verify(body, headers));
  });
});

test('Slack gets one line, in which its control characters are text', () => {
  const { url, body } = requestOf(
    aNotice(),
    aReceiver({ kind: 'slack', url: 'https://hooks.slack.com/services/T/B/x', secret: null }),
    NOW,
  );
  assert.equal(url, 'https://hooks.slack.com/services/T/B/x');
  assert.deepEqual(JSON.parse(body), {
    text: ':rotating_light: *checkout*: 2 mismatches &lt;in&gt; workload sessions &amp; more',
  });
});

describe('PagerDuty', () => {
  const receiver = { kind: 'pagerduty', url: 'https://events.pagerduty.com', secret: 'r0ut1ng' } as const;

  test('gets an incident that is resolved under the same key', () => {
    const begun = bodyOf(receiver);
    const ended = bodyOf(receiver, { state: 'resolved' });
    assert.deepEqual(
      [begun.routing_key, begun.event_action, begun.dedup_key, begun.payload.severity, begun.payload.source],
      ['r0ut1ng', 'trigger', 'checkout/cache-0/sessions/mismatch', 'critical', 'checkout/cache-0'],
    );
    assert.deepEqual([ended.event_action, ended.dedup_key], ['resolve', begun.dedup_key]);
    assert.equal(requestOf(aNotice(), aReceiver(receiver), NOW).url, 'https://events.pagerduty.com/v2/enqueue');
    assert.equal(bodyOf(receiver, { summary: 'x'.repeat(5000) }).payload.summary.length, 1024);
  });

  test('calls nobody for a change of stage, and for a failover it does', () => {
    const change = requestOf(aNotice({ event: 'stage', state: 'once', severity: 'info' }), aReceiver(receiver), NOW);
    assert.equal(change.url, 'https://events.pagerduty.com/v2/change/enqueue');
    assert.equal(JSON.parse(change.body).event_action, undefined);
    const failover = bodyOf(receiver, { event: 'failover', state: 'once' });
    assert.equal(failover.event_action, 'trigger');
  });
});

describe('Alertmanager', () => {
  const receiver = { kind: 'alertmanager', url: 'http://a:9093', secret: 'bearer' } as const;

  test('gets labels that stay the same, so that the end of an alert finds it', () => {
    const [begun] = bodyOf(receiver);
    const [ended] = bodyOf(receiver, { state: 'resolved', summary: 'Over', details: { mismatches: 9 } });
    assert.deepEqual(begun.labels, ended.labels);
    assert.deepEqual(begun.labels, {
      alertname: 'ProxyMismatch',
      severity: 'critical',
      migration: 'checkout',
      shard: 'cache-0',
      workload: 'sessions',
    });
    assert.ok(Date.parse(begun.endsAt) > NOW && Date.parse(ended.endsAt) <= Date.now());
    const { url, headers } = requestOf(aNotice(), aReceiver(receiver), NOW);
    assert.deepEqual([url, headers.authorization], ['http://a:9093/api/v2/alerts', 'Bearer bearer']);
  });

  test('gets an alert for each change of stage', () => {
    const once = { event: 'stage', state: 'once', severity: 'info' } as const;
    const [live] = bodyOf(receiver, { ...once, details: { from: 'shadow', to: 'live 10 %' } });
    const [more] = bodyOf(receiver, { ...once, details: { from: 'live 10 %', to: 'live' } });
    assert.notDeepEqual(live.labels, more.labels);
  });
});
