/**
 * Orders of events that were wrong once, beside those of other files. The defects of the history, and their faults:
 *
 *   a blocked pop beside an EXEC          a-second-wakeup-takes-over-who-the-first-waits-for
 *   SWAPDB beside a stage change          a-lane-from-before-a-swap-stays-in-its-database
 *   the expiry of -1 and -2               a-key-that-is-gone-lives-as-one-without-a-ttl
 *   a blocked command after MASTERDOWN    a-command-that-failed-stays-blocked
 *   the second scan, an expired key       what-clients-wrote-behind-a-scan-is-not-copied
 *   a client left a blocking command      a-push-reaches-a-client-that-has-left
 *   a connection that went silent         a-silent-connection-is-kept
 *   the emptied journal                   an-emptied-journal-is-written-behind-its-old-end
 *   TTLs that a restart forgot            a-key-of-which-nothing-is-known-has-no-ttl, a-forgotten-ttl-that-changed-is-kept
 */
import type { Fault } from '../fault.js';

export const INTERLEAVINGS: readonly Fault[] = [
  {
    id: 'a-lane-from-before-a-swap-stays-in-its-database',
    file: 'shadow-proxy/src/pipeline/lanes.ts',
    from: 'for (const lane of [...this.#lanes.values(), ...this.#borrowed]) this.#select(lane);',
    to: '',
    tests: ['integration/rules/rule-25-databases'],
    profile: 'swaps',
  },
  {
    id: 'what-clients-wrote-behind-a-scan-is-not-copied',
    file: 'shadow-proxy/src/copy/job/chooser.ts',
    from: 'return unknown.filter(({ key }) => this.written(db, key));',
    to: 'return [];',
    tests: ['integration/copy/backfill'],
    kept: 'written-behind-a-scan',
  },
  {
    id: 'a-silent-connection-is-kept',
    file: 'shadow-proxy/src/upstream/liveness.ts',
    from: 'else if (++seen.strikes >= STRIKES) {',
    to: 'else if (false) {',
    tests: ['integration/faults/silent.test'],
  },
  {
    id: 'an-emptied-journal-is-written-behind-its-old-end',
    file: 'shadow-proxy/src/storage/journal.ts',
    from: 'segment.bytes = segment.size = HEADER;',
    to: 'segment.size = HEADER;',
    tests: ['integration/storage/journal.test'],
  },
  {
    id: 'a-forgotten-ttl-that-changed-is-kept',
    file: 'shadow-proxy/src/suspects/expiry.ts',
    from: 'const mayHaveExpired = differs && (role & CHANGES_LIFE) !== 0;',
    to: 'const mayHaveExpired = false;',
    tests: ['rules/rule-08-restart'],
  },
];
