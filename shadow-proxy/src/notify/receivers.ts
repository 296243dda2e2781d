/** The request for each kind of receiver: a notice as an HTTP request. Pure. */
import { createHmac } from 'node:crypto';
import type { ReceiverKind, ReceiverPlan } from '../plan/plan.js';
import type { Notice } from './notice.js';

export interface Request {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

type Write = (notice: Notice, receiver: ReceiverPlan, now: number) => Request;

/** Alertmanager considers an alert over if it is not sent again within this time. In ms. */
const ALERT_MS = 5 * 60_000;
/** How long an alert about an event lasts, in ms; for a failover, long enough for people to look. */
const ONCE_MS = { info: 5 * 60_000, warning: 15 * 60_000, critical: 60 * 60_000 };
/** PagerDuty's maximum number of characters. */
const MAX_SUMMARY = 1024;

/** @param now time of sending, in ms since 1970 */
export const requestOf: Write = (notice, receiver, now) => WRITERS[receiver.kind](notice, receiver, now);

const WRITERS: Readonly<Record<ReceiverKind, Write>> = { webhook, slack, pagerduty, alertmanager };

/**
 * Follows the specification Standard Webhooks: the secret signs `id.timestamp.body`, so that a receiver can refuse
 * forged, old and repeated notices.
 */
function webhook(notice: Notice, { url, secret }: ReceiverPlan, now: number): Request {
  const { event, at, id, ...data } = notice;
  const body = JSON.stringify({
    type: `${event}.${notice.state}`,
    timestamp: iso(at),
    data: { event, ...data, since: iso(notice.since) },
  });
  const timestamp = String(Math.floor(now / 1000));
  const signature = createHmac('sha256', keyOf(secret!)).update(`${id}.${timestamp}.${body}`).digest('base64');
  return request(url, body, {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  });
}

/** `whsec_` and base64, as tools for Standard Webhooks write secrets; any other text is used unchanged. */
const keyOf = (secret: string): Buffer =>
  secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret);

const SIGNS = { info: ':information_source:', warning: ':warning:', critical: ':rotating_light:' };

function slack(notice: Notice, { url }: ReceiverPlan): Request {
  const sign = notice.state === 'resolved' ? ':white_check_mark:' : SIGNS[notice.severity];
  const text = `${sign} *${escaped(notice.migration)}*: ${escaped(notice.summary)}`;
  return request(url, JSON.stringify({ text }));
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** A condition is an incident, and so is a failover. Any other event is a change, for which nobody is paged. */
function pagerduty(notice: Notice, { url, secret }: ReceiverPlan): Request {
  const { severity, state, details, shard, workload } = notice;
  const payload = {
    summary: notice.summary.slice(0, MAX_SUMMARY),
    source: sourceOf(notice),
    timestamp: iso(notice.at),
    custom_details: { ...details, shard, ...(workload !== null && { workload }) },
  };
  if (state === 'once' && severity !== 'critical')
    return request(`${url}/v2/change/enqueue`, JSON.stringify({ routing_key: secret, payload }));
  const event = {
    routing_key: secret,
    event_action: state === 'resolved' ? 'resolve' : 'trigger',
    dedup_key: `${notice.migration}/${notice.key}`,
    payload: { ...payload, severity, component: workload ?? shard, group: notice.migration, class: notice.event },
  };
  return request(`${url}/v2/enqueue`, JSON.stringify(event));
}

const sourceOf = ({ migration, shard }: Notice): string => `${migration}/${shard}`;

function alertmanager({ state, severity, ...notice }: Notice, { url, secret }: ReceiverPlan, now: number): Request {
  const endsAt = state === 'resolved' ? notice.at : state === 'once' ? notice.at + ONCE_MS[severity] : now + ALERT_MS;
  const alert = {
    labels: {
      alertname: ALERT_NAMES[notice.event],
      severity,
      migration: notice.migration,
      shard: notice.shard,
      ...(notice.workload !== null && { workload: notice.workload }),
      // Each stage change is an alert of its own.
      ...(state === 'once' && 'to' in notice.details && { stage: String(notice.details.to) }),
    },
    annotations: { summary: notice.summary, ...texts(notice.details) },
    startsAt: iso(Math.min(notice.since, endsAt)),
    endsAt: iso(endsAt),
  };
  const login = secret === null ? undefined : { authorization: `Bearer ${secret}` };
  return request(`${url}/api/v2/alerts`, JSON.stringify([alert]), login);
}

/** These names differ from those of the alerts in dashboards/prometheus, which have other thresholds. */
const ALERT_NAMES: Readonly<Record<Notice['event'], string>> = {
  stage: 'ProxyStageChanged',
  guard: 'ProxyGuardActed',
  gate: 'ProxyGateClosed',
  mismatch: 'ProxyMismatch',
  suspects: 'ProxySuspectsIncrease',
  frozen: 'ProxyRepairsFrozen',
  outage: 'ProxyAuthorityDown',
  failover: 'ProxyFailover',
  takeover: 'ProxyTakeover',
  test: 'ProxyTest',
};

const texts = (details: Notice['details']): Record<string, string> =>
  Object.fromEntries(Object.entries(details).map(([name, value]) => [name, String(value)]));

const iso = (ms: number): string => new Date(ms).toISOString();

const request = (url: string, body: string, headers: Readonly<Record<string, string>> = {}): Request => ({
  url,
  headers: { 'content-type': 'application/json', ...headers },
  body,
});
