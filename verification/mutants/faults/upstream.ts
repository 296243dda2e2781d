/** What a server says is taken for something else. */
import type { Fault } from '../fault.js';

export const UPSTREAM: readonly Fault[] = [
  {
    id: 'a-replica-is-used-as-the-master',
    file: 'shadow-proxy/src/upstream/handshake.ts',
    from: "if (role.items && text(role.items[0]) !== 'master')",
    to: "if (role.items && text(role.items[0]) === '')",
    tests: ['unit/upstream/require-master'],
  },
  {
    id: 'a-redirection-of-a-server-reaches-the-client',
    file: 'shadow-proxy/src/session/cluster-face.ts',
    from: 'if (slot === undefined) return null;',
    to: "if (slot !== '') return null;",
    tests: ['unit/session/cluster-face'],
  },
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
    from: 'if (user === undefined) return NO_RIGHTS;',
    to: 'if (user === undefined) return { unrestricted: true, allKeys: true };',
    tests: ['unit/upstream/privileges'],
    kept: 'restricted-users',
  },
  {
    id: 'a-user-whose-rights-are-stale-may-do-everything',
    file: 'shadow-proxy/src/upstream/privileges.ts',
    from: 'return now - user.answeredAt < STALE_MS ? user.rights : NO_RIGHTS;',
    to: 'return user.rights;',
    tests: ['unit/upstream/privileges'],
  },
  {
    id: 'a-server-that-does-not-answer-grants-everything',
    file: 'shadow-proxy/src/upstream/privileges.ts',
    from: '() => answered(NO_RIGHTS));',
    to: '() => answered({ unrestricted: true, allKeys: true }));',
    tests: ['unit/upstream/privileges'],
    kept: 'restricted-users',
  },
  {
    id: 'a-new-connection-may-lead-to-another-server',
    file: 'shadow-proxy/src/upstream/server.ts',
    from: 'await this.identify();\n      if (!this.#leadsHere(connection)) await this.#follow(connection);',
    to: 'await this.identify();',
    tests: ['integration/stages/servers'],
    profile: 'astray',
  },
  {
    id: 'connections-to-the-server-before-stay-open',
    file: 'shadow-proxy/src/upstream/server.ts',
    from: "if (identity.runId !== '' && before.runId !== identity.runId) this.connections.keepTo(identity.runId);",
    to: '',
    tests: ['integration/stages/servers'],
  },
];
