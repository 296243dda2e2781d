/** What a server says is taken for something else. */
import type { Fault } from '../fault.js';

export const UPSTREAM: readonly Fault[] = [
  {
    id: 'evictions-before-our-time-count',
    file: 'shadow-proxy/src/upstream/losses.ts',
    from: 'if (last === null) return;\n    const evicted = rise(last.evicted, seen.evicted);',
    to: 'const evicted = rise(last?.evicted ?? 0, seen.evicted);\n    if (last === null) return void (this.evicted += evicted);',
    tests: ['unit/upstream/losses'],
  },
  {
    id: 'one-eviction-explains-every-loss',
    file: 'shadow-proxy/src/upstream/losses.ts',
    from: '    this.#spent++;\n',
    to: '',
    tests: ['unit/upstream/losses'],
  },
  {
    id: 'a-reset-of-statistics-hides-evictions',
    file: 'shadow-proxy/src/upstream/losses.ts',
    from: '(now < before ? now : now - before)',
    to: '(now < before ? 0 : now - before)',
    tests: ['unit/upstream/losses'],
  },
  {
    id: 'a-user-that-was-not-looked-up-may-do-everything',
    file: 'shadow-proxy/src/upstream/privileges.ts',
    from: 'if (user === undefined) return false;\n    const now',
    to: 'if (user === undefined) return true;\n    const now',
    tests: ['unit/upstream/privileges'],
  },
  {
    id: 'a-user-whose-rights-are-stale-may-do-everything',
    file: 'shadow-proxy/src/upstream/privileges.ts',
    from: 'return user.unrestricted && now - user.answeredAt < STALE_MS;',
    to: 'return user.unrestricted;',
    tests: ['unit/upstream/privileges'],
  },
  {
    id: 'a-server-that-does-not-answer-grants-everything',
    file: 'shadow-proxy/src/upstream/privileges.ts',
    from: '() => answered(false));',
    to: '() => answered(true));',
    tests: ['unit/upstream/privileges'],
  },
];
