/** The journal does not name what was written, or what it names is not read again. */
import type { Fault } from '../fault.js';

const STORAGE = 'shadow-proxy/src/storage/';
const HANDLERS = 'shadow-proxy/src/session/handlers/';
const CONTENTS = 'integration/storage/journal-contents';
const JOURNAL = 'integration/storage/journal.test';

export const NOTED: readonly Fault[] = [
  {
    id: 'a-write-of-one-key-is-not-in-the-journal',
    file: `${HANDLERS}keyed.ts`,
    from: 'if (key > 0) sequencer.journal.noteKey(db, frame, argStart[key], argEnd[key]);\n    else',
    to: 'if (key === 0)',
    tests: [CONTENTS],
  },
  {
    id: 'a-write-of-several-keys-is-not-in-the-journal',
    file: `${HANDLERS}keyed.ts`,
    from: 'else sequencer.suspects.note(db, frame, start);',
    to: '',
    tests: [CONTENTS],
  },
  {
    id: 'reads-are-in-the-journal',
    file: `${HANDLERS}keyed.ts`,
    from: 'if (own === WRITE) {\n    if (key > 0)',
    to: 'if (key >= 0) {\n    if (key > 0)',
    tests: [CONTENTS],
    profile: 'crashes',
  },
  {
    id: 'a-transaction-is-not-in-the-journal',
    file: 'shadow-proxy/src/pipeline/transaction.ts',
    from: 'if (command.follow === WRITE) sequencer.suspects.note(command.db, command.frame, 0);',
    to: '',
    tests: [CONTENTS],
  },
  {
    id: 'a-split-command-is-not-in-the-journal',
    file: `${HANDLERS}split.ts`,
    from: 'if (operation.follow === WRITE) sequencer.suspects.note(context.client.db, frame, 0);',
    to: '',
    tests: [CONTENTS],
  },
  {
    id: 'an-exclusive-command-is-not-in-the-journal',
    file: `${HANDLERS}exclusive.ts`,
    from: 'if (mirrored) sequencer.suspects.note(context.client.db, frame, start);',
    to: '',
    tests: [CONTENTS],
  },
  {
    id: 'the-other-database-of-a-move-is-not-in-the-journal',
    file: 'shadow-proxy/src/script/frame-keys.ts',
    from: 'if ((access & WRITES) !== 0) visit(otherDb, key, access);',
    to: '',
    tests: [CONTENTS],
  },
  {
    id: 'keys-that-are-only-read-are-in-the-journal',
    file: 'shadow-proxy/src/script/frame-keys.ts',
    from: 'if ((access & WRITES) !== 0) visit(placed, key);',
    to: 'visit(placed, key);',
    tests: [CONTENTS],
    profile: 'crashes',
  },
  {
    id: 'a-script-that-hides-its-keys-is-not-in-the-journal',
    file: 'shadow-proxy/src/suspects/tracker.ts',
    from: 'journal.noteHidden();',
    to: '{}',
    tests: [CONTENTS],
  },
  {
    id: 'the-journal-is-not-written-before-what-it-tells-is-sent',
    file: 'shadow-proxy/src/shard/compose.ts',
    from: 'const turn = new Turn(() => journal.flush());',
    to: 'const turn = new Turn();',
    tests: [CONTENTS],
  },
  {
    id: 'every-key-is-noted-for-database-0',
    file: `${STORAGE}journal.ts`,
    from: 'this.#record(KEY, db, end - start);',
    to: 'this.#record(KEY, 0, end - start);',
    tests: [JOURNAL, CONTENTS],
  },
  {
    id: 'keys-that-the-journal-names-are-no-suspects',
    file: 'shadow-proxy/src/shard/state-keeper.ts',
    from: 'const { keys, workloads, everything } = left;',
    to: 'const { keys, workloads, everything } = { ...left, keys: [] };',
    tests: [CONTENTS],
  },
];

export const KEPT: readonly Fault[] = [
  {
    id: 'a-new-journal-does-not-tell-the-old-one-again',
    file: `${STORAGE}journal.ts`,
    from: 'this.#current = current;\n    this.#other = other;\n    this.#noteLeft();',
    to: 'this.#current = current;\n    this.#other = other;',
    tests: [JOURNAL],
  },
  {
    id: 'what-is-still-suspect-is-forgotten-when-the-files-take-turns',
    file: `${STORAGE}journal.ts`,
    from: 'if (this.#closed || this.#turning !== turning) return;\n      const isCarried = this.#carry();',
    to: 'if (this.#closed || this.#turning !== turning) return;\n      const isCarried = true;',
    tests: [JOURNAL],
  },
  {
    id: 'a-file-is-emptied-before-what-it-tells-is-confirmed',
    file: `${STORAGE}journal.ts`,
    from: 'void this.#by.settle().then(() => {',
    to: 'void Promise.resolve().then(() => {',
    tests: [JOURNAL],
  },
  {
    id: 'a-batch-is-not-chained-to-the-one-before',
    file: `${STORAGE}journal.ts`,
    from: 'segment.crc = crc;',
    to: '',
    tests: [JOURNAL],
  },
  {
    id: 'a-file-that-was-cut-behind-its-records-is-whole',
    file: `${STORAGE}journal-reader.ts`,
    from: 'if (bytes.length % SEGMENT_BYTES !== 0 || at + FRAME > bytes.length)',
    to: 'if (at + FRAME > bytes.length)',
    tests: [JOURNAL],
  },
  {
    id: 'bytes-behind-the-records-are-not-looked-at',
    file: `${STORAGE}journal-reader.ts`,
    from: 'return isZeros(bytes.subarray(at)) ? null : `is damaged after byte ${at}`;',
    to: 'return null;',
    tests: [JOURNAL],
  },
  {
    id: 'a-missing-file-says-that-nothing-was-written',
    file: `${STORAGE}journal-reader.ts`,
    from: "if (bytes === null) return unless('is missing');",
    to: 'if (bytes === null) return null;',
    tests: [JOURNAL],
  },
  {
    id: 'a-journal-from-before-a-restart-of-the-host-is-believed',
    file: `${STORAGE}journal-reader.ts`,
    from: 'if (now === null || ',
    to: "if (now !== null && now === '' && ",
    tests: [JOURNAL],
  },
  {
    id: 'a-journal-of-another-process-is-believed',
    file: `${STORAGE}journal-reader.ts`,
    from: 'if (journal !== null && id !== journal && !isFollower)',
    to: 'if (journal === null && id !== journal && !isFollower)',
    tests: [JOURNAL],
  },
  {
    id: 'a-journal-that-never-served-is-believed-for-ever',
    file: `${STORAGE}journal-reader.ts`,
    from: 'const isFollower = before === journal && isNo(bytes, SERVES_AT);',
    to: 'const isFollower = before === journal;',
    tests: [JOURNAL],
  },
  {
    id: 'a-gap-in-the-journal-is-not-told',
    file: `${STORAGE}journal-reader.ts`,
    from: "if (!isNo(bytes, GAP_AT)) return unless('is incomplete: the disk was full');",
    to: '',
    tests: [JOURNAL],
  },
  {
    id: 'a-journal-that-is-rotated-while-it-is-read-is-believed',
    file: `${STORAGE}journal-reader.ts`,
    from: 'if (isSame && !isTorn) return records;',
    to: 'if (!isTorn) return records;',
    tests: [JOURNAL],
  },
  {
    id: 'a-write-that-is-read-half-way-is-damage',
    file: `${STORAGE}journal-reader.ts`,
    from: 'if (isSame && !isTorn) return records;',
    to: 'if (isSame) return records;',
    tests: [JOURNAL],
  },
];
