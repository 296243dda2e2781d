/** A limit holds one more, or one less. */
import type { Fault } from '../fault.js';

const LIMITS = 'shadow-proxy/src/session/client-limits.ts';
const GUARD = 'shadow-proxy/src/copy/job/memory-guard.ts';
const LOGINS = 'shadow-proxy/src/session/failed-logins.ts';
const limits = ['unit/session/client-limits'];
const logins = ['unit/session/failed-logins'];
const guard = ['unit/copy/memory-guard'];

export const CLIENTS: readonly Fault[] = [
  {
    id: 'one-client-more-than-need-be-is-closed',
    file: LIMITS,
    from: 'if (bytes <= totalClientBytes) break;',
    to: 'if (bytes < totalClientBytes) break;',
    tests: limits,
    unseen: 'It takes clients that need exactly the bytes of the bound.',
  },
  {
    id: 'the-client-that-takes-least-is-closed',
    file: LIMITS,
    from: '.sort((a, b) => b.bytes - a.bytes);',
    to: '.sort((a, b) => a.bytes - b.bytes);',
    tests: limits,
  },
  {
    id: 'memory-is-added-up-a-byte-early',
    file: LIMITS,
    from: 'if (this.#grown > Math.max(',
    to: 'if (this.#grown >= Math.max(',
    tests: limits,
    unseen: 'One byte earlier clients are weighed once more; who is closed stays the same.',
  },
  {
    id: 'of-a-small-bound-memory-is-added-up-always',
    file: LIMITS,
    from: 'Math.max(this.bounds.totalClientBytes * GROWTH_SHARE, MIN_GROWTH)',
    to: 'this.bounds.totalClientBytes * GROWTH_SHARE',
    tests: limits,
    unseen: 'Clients are weighed more often, which takes time and closes nobody else.',
  },
  {
    id: 'a-login-has-a-millisecond-less',
    file: LIMITS,
    from: 'now - session.client.connectedAt > loginMs',
    to: 'now - session.client.connectedAt >= loginMs',
    tests: limits,
    unseen: 'A look each second finds who is late: no run tells one millisecond from the next.',
  },
  {
    id: 'who-may-stay-without-a-login-is-closed',
    file: LIMITS,
    from: ' && session.mustLogIn)',
    to: ')',
    tests: limits,
  },
  {
    id: 'a-client-may-be-idle-for-a-millisecond-less',
    file: LIMITS,
    from: 'now - session.client.activeAt > idleMs',
    to: 'now - session.client.activeAt >= idleMs',
    tests: limits,
    unseen: 'A look each second finds who is idle: no run tells one millisecond from the next.',
  },
  {
    id: 'idle-clients-are-closed-where-none-may-be',
    file: LIMITS,
    from: 'idleMs > 0 && ',
    to: '',
    tests: limits,
  },
  {
    id: 'a-client-that-waits-is-closed-as-idle',
    file: LIMITS,
    from: ' && session.isIdle)',
    to: ')',
    tests: limits,
  },
  {
    id: 'one-failed-login-less-is-free',
    file: LOGINS,
    from: 'ofUser > FREE.ofUser',
    to: 'ofUser >= FREE.ofUser',
    tests: logins,
  },
  {
    id: 'failed-logins-are-forgotten-a-millisecond-early',
    file: LOGINS,
    from: 'now - known.since > MEMORY_MS',
    to: 'now - known.since >= MEMORY_MS',
    tests: logins,
    unseen: 'It takes a failed login at the very millisecond, a minute after the first.',
  },
  {
    id: 'one-address-less-is-remembered',
    file: LOGINS,
    from: 'if (counts.size >= MAX_COUNTS)',
    to: 'if (counts.size >= MAX_COUNTS - 1)',
    tests: logins,
    unseen: 'It takes failed logins from 10,000 addresses.',
  },
];

export const MEMORY: readonly Fault[] = [
  {
    id: 'a-copy-that-just-fits-is-refused',
    file: GUARD,
    from: 'if (needed <= there.max * FULL) continue;',
    to: 'if (needed < there.max * FULL) continue;',
    tests: guard,
    unseen: 'It takes a mirror that the copy would fill to the very byte.',
  },
  {
    id: 'what-the-mirror-has-already-is-counted-twice',
    file: GUARD,
    from: 'there.used - there.data + Math.max(there.data, here.data)',
    to: 'there.used + here.data',
    tests: guard,
  },
  {
    id: 'what-the-mirror-needs-itself-is-not-counted',
    file: GUARD,
    from: 'there.used - there.data + Math.max(there.data, here.data)',
    to: 'Math.max(there.data, here.data)',
    tests: guard,
  },
  {
    id: 'a-mirror-is-full-a-byte-early',
    file: GUARD,
    from: 'if (used > max * FULL)',
    to: 'if (used >= max * FULL)',
    tests: guard,
    unseen: 'It takes a mirror that is full to the very byte.',
  },
  {
    id: 'evictions-from-before-stop-a-copy',
    file: GUARD,
    from: 'before !== undefined && evicted > before',
    to: 'before !== undefined && evicted > 0',
    tests: guard,
  },
  {
    id: 'each-look-tells-of-the-same-eviction',
    file: GUARD,
    from: 'const before = this.#evicted.get(mirror.side);\n    this.#evicted.set(mirror.side, evicted);',
    to: 'const before = this.#evicted.get(mirror.side);',
    tests: guard,
    unseen: 'The first look that sees an eviction stops the job, and to stop it again does nothing.',
  },
  {
    id: 'no-limit-is-a-limit-of-nothing',
    file: GUARD,
    from: "max: field('maxmemory') || Infinity,",
    to: "max: field('maxmemory'),",
    tests: guard,
  },
];
