/** People who are not notified, or too often, or with what they must not see; and traces that say the wrong thing. */
import type { Fault } from '../fault.js';

export const NOTIFY: readonly Fault[] = [
  {
    id: 'a-webhook-is-signed-without-its-time',
    file: 'shadow-proxy/src/notify/receivers.ts',
    from: '`${id}.${timestamp}.${body}`',
    to: '`${id}.${body}`',
    tests: ['unit/notify/receivers'],
  },
  {
    id: 'the-end-of-an-incident-has-another-key',
    file: 'shadow-proxy/src/notify/receivers.ts',
    from: 'dedup_key: `${notice.migration}/${notice.key}`',
    to: 'dedup_key: notice.id + notice.state',
    tests: ['unit/notify/receivers'],
  },
  {
    id: 'a-queue-has-no-bound',
    file: 'shadow-proxy/src/notify/notice-queue.ts',
    from: 'this.#queue.length >= this.limits.notices',
    to: 'this.#queue.length < 0',
    tests: ['unit/notify/notice-queue'],
  },
  {
    id: 'a-refused-notice-is-sent-forever',
    file: 'shadow-proxy/src/notify/notice-queue.ts',
    from: "if (outcome === 'later') {",
    to: "if (outcome !== 'accepted') {",
    tests: ['unit/notify/notice-queue'],
  },
  {
    id: 'a-receiver-that-asks-for-a-pause-gets-none',
    file: 'shadow-proxy/src/notify/notice-queue.ts',
    from: 'Math.max(pause, Math.min(afterMs ?? 0, MOST_AFTER_MS))',
    to: 'pause',
    tests: ['unit/notify/notice-queue'],
  },
  {
    id: 'an-answer-shows-the-secret',
    file: 'shadow-proxy/src/notify/send.ts',
    from: "shown.replaceAll(each, '***')",
    to: 'shown',
    tests: ['unit/notify/notice-queue'],
  },
  {
    id: 'each-mismatch-is-a-notice',
    file: 'shadow-proxy/src/notify/conditions.ts',
    from: 'now - known.reportedAt >= this.timing.mismatchEveryMs',
    to: 'now > known.reportedAt',
    tests: ['unit/notify/conditions'],
  },
  {
    id: 'a-gate-of-another-stage-counts-as-closed',
    file: 'shadow-proxy/src/notify/conditions.ts',
    from: 'if (gate.stageSince !== stageSince) {',
    to: 'if (gate.stageSince > stageSince) {',
    tests: ['unit/notify/conditions'],
  },
  {
    id: 'suspects-that-were-repaired-count-as-growing',
    file: 'shadow-proxy/src/notify/conditions.ts',
    from: 'suspects > first.keys && seen.every(({ keys }) => keys > 0)',
    to: 'suspects > first.keys',
    tests: ['unit/notify/conditions'],
  },
  {
    id: 'every-start-is-a-takeover',
    file: 'shadow-proxy/src/notify/recorded.ts',
    from: 'if (event.from === undefined) return null;',
    to: '',
    tests: ['unit/notify/recorded'],
  },
  {
    id: 'traces-show-keys-that-the-ledger-hides',
    file: 'shadow-proxy/src/otel/traces.ts',
    from: 'this.options.showKeys() && spec.singleKey > 0',
    to: 'spec.singleKey > 0',
    tests: ['integration/otel/otel'],
  },
  {
    id: 'a-mismatch-is-traced-as-a-match',
    file: 'shadow-proxy/src/otel/traces.ts',
    from: 'this.#end(operation, verdict.kind, monotonicMs());',
    to: "this.#end(operation, 'match', monotonicMs());",
    tests: ['integration/otel/otel'],
  },
];
