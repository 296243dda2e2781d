/** Keys that may differ are not suspects, or stop being suspects too early. */
import type { Fault } from '../fault.js';

export const SUSPECTS: readonly Fault[] = [
  {
    id: 'a-key-that-is-gone-lives-as-one-without-a-ttl',
    file: 'shadow-proxy/src/suspects/expiry.ts',
    from: 'if (authority.state !== mirror.state) return this',
    to: "if ((authority.state === 'expires') !== (mirror.state === 'expires')) return this",
    tests: ['rules/rule-08-edge'],
  },
  {
    id: 'an-old-repair-ends-a-new-suspicion',
    file: 'shadow-proxy/src/suspects/suspects.ts',
    from: 'if (suspect.generation !== generation || this.#keys.get(id) !== suspect) return false;',
    to: 'if (this.#keys.get(id) !== suspect) return false;',
    tests: ['unit/suspects/suspects'],
  },
  {
    id: 'a-repair-ends-the-suspicion-of-another-time',
    file: 'shadow-proxy/src/suspects/suspects.ts',
    from: 'if (suspect.generation !== generation || this.#keys.get(id) !== suspect) return false;',
    to: 'if (suspect.generation !== generation) return false;',
    tests: ['unit/suspects/suspects'],
  },
  {
    id: 'a-lost-reply-hides-a-missing-effect',
    file: 'shadow-proxy/src/suspects/suspects.ts',
    from: 'known.acknowledged ||= reason !== REPLY_LOST;',
    to: 'known.acknowledged = reason !== REPLY_LOST;',
    tests: ['unit/suspects/suspects'],
  },
  {
    id: 'a-mismatch-is-a-key-that-was-written',
    file: 'shadow-proxy/src/suspects/suspects.ts',
    from: 'known.touched ||= !UNTOUCHED.has(reason);',
    to: 'known.touched ||= true;',
    tests: ['unit/suspects/suspects'],
  },
  {
    id: 'keys-past-the-bound-are-forgotten',
    file: 'shadow-proxy/src/suspects/suspects.ts',
    from: '      workload.markSuspect(`more than ${MAX_LISTED} suspects (${reason})`);\n',
    to: '',
    tests: ['unit/suspects/suspects'],
  },
  {
    id: 'a-suspect-keeps-the-buffer-of-its-client',
    file: 'shadow-proxy/src/suspects/suspects.ts',
    from: 'key: Buffer.from(key),',
    to: 'key,',
    tests: ['unit/suspects/suspects'],
  },
  {
    id: 'a-key-that-is-not-mirrored-becomes-a-suspect',
    file: 'shadow-proxy/src/suspects/tracker.ts',
    from: '    if (!workload.rule(key, 0, key.length).mirrorsWrites) return;\n',
    to: '',
    tests: ['unit/suspects/tracker'],
  },
  {
    id: 'a-write-with-hidden-keys-leaves-no-suspicion',
    file: 'shadow-proxy/src/suspects/tracker.ts',
    from: '(db, key) => this.key(db, key, reason))) this.hidden(reason);',
    to: '(db, key) => this.key(db, key, reason)));',
    tests: ['unit/suspects/tracker'],
  },
  {
    id: 'a-swap-of-databases-forgets-suspects',
    file: 'shadow-proxy/src/suspects/tracker.ts',
    from: 'if (db === a || db === b) for (const each of [a, b])',
    to: 'if (db === a) for (const each of [a])',
    tests: ['unit/suspects/tracker'],
  },
  {
    id: 'a-script-that-may-write-anything-is-trusted',
    file: 'shadow-proxy/src/suspects/tracker.ts',
    from: 'if (!trusted) this.hidden(reason);',
    to: '',
    tests: ['unit/suspects/tracker'],
  },
  {
    id: 'what-is-derived-from-a-suspect-is-not-one',
    file: 'shadow-proxy/src/suspects/tracker.ts',
    from: 'if (spec?.derives === true && this.#touchedBy(db, operation.original, READS, () => true))',
    to: 'if (spec?.derives === false && this.#touchedBy(db, operation.original, READS, () => true))',
    tests: ['integration/rules/rule-07'],
  },
];
