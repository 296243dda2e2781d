/**
 * The journal of suspects on a real disk: full, unreadable, put aside, read by the next process.
 *
 * Needs real files: a disk that is full, and files that are cut, damaged, old or rotated.
 */
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { disk } from '../../../src/io/files.js';
import { crc32 } from '../../../src/storage/checksum.js';
import { Journal, type JournalOptions } from '../../../src/storage/journal.js';
import { readJournal, readLeftJournal, type JournalRecords } from '../../../src/storage/journal-reader.js';
import { scratch } from '../../support/plans.js';
import { fillDisk, freeDisk, smallDisk } from '../../support/disk.js';

const never = new Promise<void>(() => undefined);
const ID = '0123456789abcdef';
/** What the state says of a process that ended suddenly. */
const ENDED = { journal: ID, cleanShutdown: false };
const OPTIONS = {
  id: ID,
  before: null,
  left: { keys: [], workloads: new Map(), everything: null },
  settle: () => never,
  carry: () => undefined,
  failed: (problem: Error) => assert.fail(problem),
};

const open = (directory: string, options: Partial<JournalOptions> = {}): Journal =>
  new Journal({ ...OPTIONS, directory, ...options });
const note = (journal: Journal, ...names: string[]): void => {
  for (const name of names) journal.noteKey(0, Buffer.from(name), 0, name.length);
  journal.flush();
};
const contentOf = ({ keys, workloads, everything }: JournalRecords): unknown => [
  keys.map(({ db, key }) => `${db}:${key.toString()}`),
  [...workloads],
  everything,
];
const left = (directory: string): unknown => contentOf(readJournal(directory, ENDED));

test('a journal whose disk was full for a while says that it does not know everything, and is whole', async (t) => {
  const disk = smallDisk(t, '64k');
  if (disk === null) return;
  const directory = join(disk, 'journal');
  const problems: Error[] = [];
  let settle: () => void = () => undefined;
  const journal = open(directory, {
    settle: () => new Promise((resolve) => (settle = resolve)),
    failed: (problem) => problems.push(problem),
  });
  note(journal, 'before');
  fillDisk(disk);
  // More than the rest of the page.
  note(journal, ...Array.from({ length: 200 }, (_, i) => `while it was full: ${i}`));
  assert.match(String(problems), /ENOSPC/);
  // Where the process ends now, that is known all the same.
  const [keys, , why] = left(directory) as [string[], unknown, string];
  assert.deepEqual(keys, ['0:before']);
  assert.match(why, /journal-a is incomplete: the disk was full/);
  freeDisk(disk);
  note(journal, 'after');
  const [both, , reason] = left(directory) as [string[], unknown, string];
  assert.deepEqual(
    [both, reason],
    [['0:before', '0:after'], 'the disk was full, and writes in flight could not be recorded'],
  );
  settle();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(left(directory), [[], [], null], 'when all of it is confirmed, nothing is left to tell');
});

test('a file that was put aside and emptied is written from its beginning when its turn comes again', async (t) => {
  const directory = join(scratch(t), 'journal');
  const journal: Journal = open(directory, {
    settle: () => Promise.resolve(),
    carry: () => journal.noteWorkload('w', 'suspect'),
  });
  for (const name of ['first', 'second', 'third', 'fourth']) {
    journal.noteKey(0, Buffer.from(name), 0, name.length);
    journal.rotate();
    await new Promise((resolve) => setImmediate(resolve));
  }
  journal.noteKey(3, Buffer.from('last'), 0, 4);
  journal.flush();
  assert.deepEqual(left(directory), [['3:last'], [['w', 'suspect']], null]);
});

test('a file that was put aside is read until the writes that were on their way are confirmed', async (t) => {
  const directory = join(scratch(t), 'journal');
  let settle: () => void = () => undefined;
  const journal = open(directory, { settle: () => new Promise((resolve) => (settle = resolve)) });
  note(journal, 'put aside');
  journal.rotate();
  note(journal, 'written');
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(left(directory), [['0:put aside', '0:written'], [], null]);
  settle();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(left(directory), [['0:written'], [], null]);
});

test('when all writes are confirmed, only the workloads that are suspect as a whole are left', (t) => {
  const directory = join(scratch(t), 'journal');
  const journal: Journal = open(directory, { carry: () => journal.noteWorkload('w', 'suspect') });
  note(journal, 'put aside');
  journal.rotate();
  note(journal, 'written');
  journal.noteKey(0, Buffer.from('not even written'), 0, 4);
  journal.settled();
  assert.deepEqual(left(directory), [[], [['w', 'suspect']], null]);
  note(journal, 'later');
  assert.deepEqual(left(directory), [['0:later'], [['w', 'suspect']], null]);
});

test('a journal carries more suspects than fit in a file to the next process, also after a start that failed', async (t) => {
  const directory = join(scratch(t), 'journal');
  const names = Array.from({ length: 5_000 }, (_, i) => Buffer.from(`${i}:`.padEnd(1_000, 'x')));
  const noteAll = (journal: Journal): void => names.forEach((name) => journal.noteKey(0, name, 0, name.length));
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const first = open(directory);
  noteAll(first);
  first.flush();
  // Neither of these two comes to serve: the state still names the first.
  for (const id of ['1'.repeat(16), '2'.repeat(16)]) {
    const found = readJournal(directory, ENDED);
    assert.deepEqual([found.keys.length, found.everything], [names.length, null]);
    const next: Journal = open(directory, { id, before: ID, left: found, settle: settled, carry: () => noteAll(next) });
    next.noteWorkload('w', `suspect: ${id[0]}`);
    next.flush();
    next.close();
  }
  const found = readJournal(directory, ENDED);
  const journal: Journal = open(directory, {
    ...{ id: '3'.repeat(16), before: ID, left: found },
    settle: settled,
    carry: () => noteAll(journal),
  });
  assert.deepEqual([...found.workloads], [['w', 'suspect: 2']]);
  journal.rotate();
  await settled();
  await settled();
  journal.noteKey(1, Buffer.from('afterwards'), 0, 10);
  journal.flush();
  const { keys, everything } = readJournal(directory, ENDED);
  assert.deepEqual([keys.length, keys.at(-1)!.key.toString(), everything], [names.length + 1, 'afterwards', null]);
  journal.close();
});

describe('a part of a journal that cannot be read makes all keys suspect:', () => {
  /** A journal with 50 batches in `journal-a`, and one in `journal-b`. */
  const written = (t: TestContext): string => {
    const directory = join(scratch(t), 'journal');
    const journal = open(directory);
    for (let i = 0; i < 50; i++) note(journal, `key:${i}`, `other:${i}`);
    journal.rotate();
    note(journal, 'in the other file');
    journal.close();
    assert.equal(readJournal(directory, ENDED).keys.length, 101);
    return directory;
  };
  const suspicion = (directory: string, mark = ENDED): string | null => readJournal(directory, mark).everything;

  test('any byte that changed, wherever it is; but whether the process of the state serves', (t) => {
    const directory = written(t);
    const path = join(directory, 'journal-a');
    const good = readFileSync(path);
    const end = good.lastIndexOf('other:49') + 8;
    const offsets = [
      ...Array.from({ length: 72 }, (_, at) => at),
      ...Array.from({ length: 100 }, (_, i) => 72 + i * 7),
      end - 1,
      end,
      end + 1,
      good.length >> 1,
      good.length - 1,
    ];
    const file = openSync(path, 'r+');
    for (const at of offsets) {
      const set = (byte: number): number => writeSync(file, Buffer.from([byte]), 0, 1, at);
      set(good[at] ^ (1 << (at % 8)));
      if (at < 68 || at >= 72) assert.notEqual(suspicion(directory), null, `byte ${at}`);
      set(good[at]);
    }
    closeSync(file);
    assert.equal(suspicion(directory), null);
  });

  test('a cut, at the end of a record or anywhere; an empty file; none', (t) => {
    const directory = written(t);
    for (const name of ['journal-b', 'journal-a']) {
      const path = join(directory, name);
      const good = readFileSync(path);
      for (const size of [good.length - 1, 4096, 72 + 8 + 9 + 5 + 9 + 7, 73, 72, 71, 1, 0]) {
        truncateSync(path, size);
        assert.match(
          suspicion(directory)!,
          new RegExp(`${name} (was truncated|is damaged)`),
          `${name} of ${size} bytes`,
        );
        writeFileSync(path, good);
      }
      rmSync(path);
      assert.match(suspicion(directory)!, new RegExp(`${name} is missing`));
      writeFileSync(path, good);
    }
  });

  test('an older copy; one from before a restart of the host; one of an earlier release', (t) => {
    const directory = written(t);
    assert.match(
      suspicion(directory, { journal: 'f'.repeat(16), cleanShutdown: false })!,
      /is not of the process that state.json names/,
    );
    // Even where the state says that nothing was under way: it may be the state that is older.
    assert.match(
      suspicion(directory, { journal: 'f'.repeat(16), cleanShutdown: true })!,
      /is not of the process that state.json names/,
    );
    open(directory).close();
    for (const name of ['journal-a', 'journal-b']) {
      const path = join(directory, name);
      const bytes = readFileSync(path);
      bytes.write('00000000-0000-4000-8000-000000000000', 24, 'latin1');
      bytes.writeUInt32LE(crc32(bytes, 0, 60), 60);
      writeFileSync(path, bytes);
    }
    assert.match(suspicion(directory)!, /the host was restarted since/);
    assert.equal(
      suspicion(directory, { journal: ID, cleanShutdown: true }),
      null,
      'after an end in order, nothing was under way',
    );
    for (const name of ['journal-a', 'journal-b'])
      writeFileSync(join(directory, name), Buffer.from([1, 0, 0, 0, 0, 1, 0, 0, 0, 107]));
    assert.match(
      suspicion(directory, { journal: null as unknown as string, cleanShutdown: false })!,
      /or of an earlier release/,
    );
  });

  test('it stays so until it is dealt with, though the process after it never came to serve', (t) => {
    const directory = written(t);
    truncateSync(join(directory, 'journal-a'), 0);
    const next = open(directory, { id: '1'.repeat(16), before: ID, left: readJournal(directory, ENDED) });
    assert.match(suspicion(directory)!, /journal-a is damaged/);
    // Once it serves, the state names it: one that does not is older.
    next.serve();
    assert.match(suspicion(directory)!, /is not of the process that state.json names/);
  });
});

describe('a journal whose process lost the shard, and still writes', () => {
  test('is read again where a write was met half way', async (t) => {
    const directory = join(scratch(t), 'journal');
    const journal = open(directory);
    for (let i = 0; i < 50; i++) note(journal, `key:${i}`.padEnd(200, '-'));
    const path = join(directory, 'journal-a');
    const whole = readFileSync(path);
    // The last write reached over the end of a page, and only the second page was seen.
    const half = Buffer.from(whole);
    half.fill(0, whole.indexOf('key:18') - 17, 4096);
    writeFileSync(path, half);
    assert.match(readJournal(directory, ENDED).everything!, /is damaged after byte 39/);
    const reading = readLeftJournal(directory, ENDED);
    // It has read both files twice by now.
    writeFileSync(path, whole);
    const { keys, everything } = await reading;
    assert.deepEqual([keys.length, everything], [50, null]);
  });

  test('is damaged where it stays so', async (t) => {
    const directory = join(scratch(t), 'journal');
    note(open(directory), 'key');
    truncateSync(join(directory, 'journal-a'), 100);
    assert.match((await readLeftJournal(directory, ENDED)).everything!, /journal-a was truncated/);
  });

  test('is read again where it was rotated between its two files', async (t) => {
    const directory = join(scratch(t), 'journal');
    const atOnce = { then: (run: () => void) => run() } as Promise<void>;
    const journal: Journal = open(directory, { settle: () => atOnce, carry: () => note(journal, 'suspect') });
    journal.rotate();
    const readFile = disk.readFile;
    let isRotated = false;
    t.mock.method(disk, 'readFile', (path: string) => {
      const bytes = readFile(path);
      // Read for the first time, this file is empty; then it lists the suspect, and the other is emptied.
      if (!isRotated && path.endsWith('journal-a')) {
        isRotated = true;
        journal.rotate();
      }
      return bytes;
    });
    assert.deepEqual(contentOf(await readLeftJournal(directory, ENDED)), [['0:suspect'], [], null]);
  });
});

test('a file grows with what is written, and has zeros behind it at any moment', (t) => {
  const directory = join(scratch(t), 'journal');
  const journal = open(directory);
  const name = 'x'.repeat(100_000);
  for (let i = 0; i < 100; i++) {
    note(journal, `${i}${name}`);
    assert.equal(readJournal(directory, ENDED).everything, null);
  }
  assert.equal(readJournal(directory, ENDED).keys.length, 100);
  const sizes = ['journal-a', 'journal-b'].map((file) => statSync(join(directory, file)).size);
  assert.ok(
    sizes.every((size) => size % (4 << 20) === 0 && size <= 12 << 20),
    String(sizes),
  );
});

test('a CRC-32 is the same at once, piece by piece, and of few bytes as of many', () => {
  const bytes = Buffer.from('123456789'.repeat(100));
  assert.equal(crc32(bytes, 0, 9), 0xcbf43926);
  assert.equal(crc32(bytes, 4, 9, crc32(bytes, 0, 4)), 0xcbf43926);
  let byBytes = 0;
  for (let at = 0; at < bytes.length; at++) byBytes = crc32(bytes, at, at + 1, byBytes);
  assert.equal(crc32(bytes, 0, bytes.length), byBytes);
});
