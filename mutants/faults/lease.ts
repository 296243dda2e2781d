/** A lease is trusted for too long, released too soon, or held by two. */
import type { Fault } from '../fault.js';

const LEASE = 'shadow-proxy/src/lease/lease.ts';
const OWNERSHIP = 'shadow-proxy/src/lease/ownership.ts';
const lease = ['unit/lease/lease'];
const ownership = ['unit/lease/ownership'];

export const LEASES: readonly Fault[] = [
  {
    id: 'a-holder-is-silent-a-millisecond-late',
    file: LEASE,
    from: 'watchedMs >= WATCH_MS',
    to: 'watchedMs > WATCH_MS',
    tests: lease,
    unseen: 'It differs by one millisecond only where a time is met exactly: nothing that is promised ends there.',
  },
  { id: 'a-holder-is-silent-unwatched', file: LEASE, from: ' && watchedMs >= WATCH_MS', to: '', tests: lease },
  {
    id: 'a-holder-is-silent-a-second-late',
    file: LEASE,
    from: 'holder.idleS >= SILENT_S &&',
    to: 'holder.idleS > SILENT_S &&',
    tests: lease,
  },
  {
    id: 'a-pause-between-looks-is-not-seen',
    file: LEASE,
    from: ' || asked - this.#observedAt > PAUSE_MS',
    to: '',
    tests: lease,
  },
  {
    id: 'a-look-that-took-long-is-not-seen',
    file: LEASE,
    from: 'now - asked > PAUSE_MS || ',
    to: '',
    tests: lease,
  },
  {
    id: 'a-holder-is-alive-that-was-heard-before-we-looked',
    file: LEASE,
    from: 'watchedMs > (holder.idleS + 1) * 1_000',
    to: 'watchedMs > holder.idleS * 1_000',
    tests: lease,
  },
  {
    id: 'who-waits-silently-stays-first',
    file: LEASE,
    from: ' && id < this.clientId && idleS < SILENT_S)',
    to: ' && id < this.clientId)',
    tests: lease,
  },
  {
    id: 'who-came-last-is-first',
    file: LEASE,
    from: ' && id < this.clientId && idleS < SILENT_S)',
    to: ' && id > this.clientId && idleS < SILENT_S)',
    tests: lease,
    unseen: 'One standby takes over all the same: which of several makes no difference to clients.',
  },
  {
    id: 'two-claim-a-lease',
    file: LEASE,
    from: "if (this.#claims(lines).some(({ word }) => word === 'holds')) {",
    to: 'if (lines.size === 0) {',
    tests: lease,
  },
  {
    id: 'the-server-had-us-when-it-answered',
    file: LEASE,
    from: 'this.tenure.aliveAt = asked;',
    to: 'this.tenure.aliveAt = monotonicMs();',
    tests: lease,
  },
  {
    id: 'giving-a-lease-back-waits-for-ever',
    file: LEASE,
    from: 'const lines = await Promise.race([Promise.all([this.#say(word), this.#list()]), late]).catch(() => null);',
    to: 'const lines = await Promise.all([this.#say(word), this.#list()]).catch(() => null);',
    tests: lease,
  },
  {
    id: 'a-goodbye-is-not-seen',
    file: LEASE,
    from: "word === 'clean' || word === 'left') ?? null",
    to: "word === 'clean') ?? null",
    tests: lease,
  },
];

export const OWNERS: readonly Fault[] = [
  {
    id: 'a-standby-does-not-give-the-holder-its-time',
    file: OWNERSHIP,
    from: 'vacantSince = null;\n        patienceMs = DISCONNECTED_MS;',
    to: 'vacantSince = null;\n        patienceMs = 0;',
    tests: ownership,
  },
  {
    id: 'a-standby-waits-a-look-longer',
    file: OWNERSHIP,
    from: 'monotonicMs() - vacantSince < patienceMs',
    to: 'monotonicMs() - vacantSince <= patienceMs',
    tests: ownership,
    unseen: 'It differs by one millisecond only where a time is met exactly: nothing that is promised ends there.',
  },
  {
    id: 'a-standby-waits-after-a-goodbye',
    file: OWNERSHIP,
    from: 'note: goodbye.note };\n        patienceMs = 0;',
    to: 'note: goodbye.note };',
    tests: ownership,
  },
  {
    id: 'a-lease-lost-for-too-long-by-a-millisecond-is-kept',
    file: OWNERSHIP,
    from: 'monotonicMs() - tenure.aliveAt < DISCONNECTED_MS',
    to: 'monotonicMs() - tenure.aliveAt <= DISCONNECTED_MS',
    tests: ownership,
    unseen: 'It differs by one millisecond only where a time is met exactly: nothing that is promised ends there.',
  },
  {
    id: 'a-lease-lost-for-any-time-is-kept',
    file: OWNERSHIP,
    from: 'else if (!(await this.#unbroken(lease, tenure)))',
    to: 'else if (false)',
    tests: ownership,
  },
  {
    id: 'a-restarted-server-is-a-lost-lease',
    file: OWNERSHIP,
    from: 'if (lease.runId !== tenure.runId || monotonicMs',
    to: 'if (monotonicMs',
    tests: ownership,
  },
  {
    id: 'the-other-server-vouches-for-a-time-before-its-lease',
    file: OWNERSHIP,
    from: ' || other.tenure.since > tenure.aliveAt',
    to: '',
    tests: ownership,
  },
  {
    id: 'the-other-server-does-not-vouch',
    file: OWNERSHIP,
    from: '() => other.held,',
    to: '() => false,',
    tests: ownership,
  },
  {
    id: 'who-took-a-lease-gives-it-back-at-once',
    file: OWNERSHIP,
    from: 'await sleep(Math.max(0, this.#seizedAt + DISCONNECTED_MS + OBSERVE_MS - monotonicMs()));',
    to: '',
    tests: ownership,
    unseen: 'Only a rollback without proxies takes a lease by force, and a simulated operator makes none.',
  },
  {
    id: 'who-gives-a-lease-back-is-not-seen-by-who-waits',
    file: OWNERSHIP,
    from: 'if (waited.some(Boolean)) await sleep(2 * OBSERVE_MS);',
    to: '',
    tests: ownership,
  },
  {
    id: 'a-check-of-the-lease-waits-for-ever',
    file: OWNERSHIP,
    from: 'await Promise.race([Promise.all(asked), late]);\n    if (this.#ended instanceof LeaseError)',
    to: 'await Promise.all(asked);\n    if (this.#ended instanceof LeaseError)',
    tests: ownership,
  },
  {
    id: 'a-holder-is-silent-itself',
    file: OWNERSHIP,
    from: 'for (const lease of this.#all) if (lease.held) lease.ping().catch(() => undefined);',
    to: '',
    tests: ownership,
  },
  {
    id: 'a-lease-is-not-tried-again',
    file: OWNERSHIP,
    from: 'this.#retries.delete(lease);\n        if (!lease.held) this.#tryAgain(lease);',
    to: 'this.#retries.delete(lease);',
    tests: ownership,
  },
];
