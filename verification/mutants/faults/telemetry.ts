/** Figures that are not what was measured. */
import type { Fault } from '../fault.js';

export const TELEMETRY: readonly Fault[] = [
  {
    id: 'the-ledger-does-not-say-what-it-left-out',
    file: 'shadow-proxy/src/telemetry/ledger.ts',
    from: 'if (this.#closed || !this.#takeToken(mismatch)) return this.#lose([NO_LINE]);',
    to: 'if (this.#closed || !this.#takeToken(mismatch)) return;',
    tests: ['unit/telemetry/ledger'],
  },
  {
    id: 'the-ledger-has-no-bound',
    file: 'shadow-proxy/src/telemetry/ledger.ts',
    from: 'if (this.#queuedBytes + line.text.length > MAX_QUEUED_BYTES) return this.#lose([line]);',
    to: '',
    tests: ['unit/telemetry/ledger'],
  },
  {
    id: 'the-tail-shows-keys',
    file: 'shadow-proxy/src/telemetry/ledger.ts',
    from: '...this.#latest.map(redactEntry)].slice(-IN_MEMORY)',
    to: '...this.#latest].slice(-IN_MEMORY)',
    tests: ['unit/telemetry/ledger'],
  },
  {
    id: 'rates-are-of-all-time',
    file: 'shadow-proxy/src/telemetry/prefixes.ts',
    from: '[entry.before, entry.recent] = [entry.recent, 0];',
    to: '[entry.before, entry.recent] = [entry.recent, entry.recent];',
    tests: ['unit/telemetry/prefixes'],
  },
  {
    id: 'a-restart-makes-negative-rates',
    file: 'shadow-proxy/src/telemetry/series.ts',
    from: 'Math.max(0, count(now) - count(before)) / seconds',
    to: '(count(now) - count(before)) / seconds',
    tests: ['unit/telemetry/series'],
  },
];
