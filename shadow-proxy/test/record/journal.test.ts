import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Journal } from '../../src/record/journal.js';
import { scratch } from '../plan/plans.js';
import { fillDisk, freeDisk, smallDisk } from '../support/disk.js';

const never = new Promise<void>(() => undefined);

test('a journal whose disk was full for a while says that it does not know everything, and is whole', (t) => {
  const disk = smallDisk(t, '64k');
  if (disk === null) return;
  const directory = join(disk, 'journal');
  const problems: Error[] = [];
  const open = (): Journal => new Journal(directory, () => never, () => undefined, (problem) => problems.push(problem));
  const journal = open();
  const note = (...names: string[]): void => {
    for (const name of names) journal.noteKey(0, Buffer.from(name), 0, name.length);
    journal.flush();
  };
  note('before');
  fillDisk(disk);
  // More than the rest of the page.
  note(...Array.from({ length: 200 }, (_, i) => `while it was full: ${i}`));
  assert.match(String(problems), /ENOSPC/);
  assert.deepEqual(open().left.keys.map(({ key }) => key.toString()), ['before']);
  freeDisk(disk);
  note('after');
  const { keys, everything } = open().left;
  assert.deepEqual([keys.map(({ key }) => key.toString()), everything], [['before', 'after'], true]);
});

test('a file that was put aside and emptied is written from its beginning when its turn comes again', async (t) => {
  const directory = join(scratch(t), 'journal');
  const open = (): Journal => new Journal(directory, () => Promise.resolve(), () => journal.noteWorkload('w', 'in doubt'), (problem) => assert.fail(problem));
  const journal: Journal = open();
  journal.begin();
  for (const name of ['first', 'second', 'third', 'fourth']) {
    journal.noteKey(0, Buffer.from(name), 0, name.length);
    journal.turn();
    await new Promise((resolve) => setImmediate(resolve));
  }
  journal.noteKey(3, Buffer.from('last'), 0, 4);
  journal.flush();
  const { keys, workloads, everything } = open().left;
  assert.deepEqual([keys.map(({ db, key }) => `${db}:${key.toString()}`), [...workloads], everything], [['3:last'], [['w', 'in doubt']], false]);
});

test('when everything is confirmed, what is still in doubt as a whole is all that is left', (t) => {
  const directory = join(scratch(t), 'journal');
  const open = (): Journal => new Journal(directory, () => never, () => journal.noteWorkload('w', 'in doubt'), (problem) => assert.fail(problem));
  const journal: Journal = open();
  journal.begin();
  const note = (name: string): void => journal.noteKey(0, Buffer.from(name), 0, name.length);
  note('put aside');
  journal.turn();
  note('written');
  journal.flush();
  note('not even written');
  journal.settled();
  const told = (): unknown => (({ keys, workloads, everything }) => [keys.map(({ key }) => key.toString()), [...workloads], everything])(open().left);
  assert.deepEqual(told(), [[], [['w', 'in doubt']], false]);
  note('later');
  journal.flush();
  assert.deepEqual(told(), [['later'], [['w', 'in doubt']], false]);
});

test('a journal carries more than a file of doubts from one process to the next', async (t) => {
  const directory = join(scratch(t), 'journal');
  const names = Array.from({ length: 5_000 }, (_, i) => Buffer.from(`${i}:`.padEnd(1_000, 'x')));
  const noteAll = (journal: Journal): void => names.forEach((name) => journal.noteKey(0, name, 0, name.length));
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const open = (): Journal => new Journal(directory, settled, () => noteAll(journal), (problem) => assert.fail(problem));
  let journal: Journal = open();
  noteAll(journal);
  journal.flush();
  journal = open();
  assert.equal(journal.left.keys.length, names.length);
  // Something is in doubt before it begins, too.
  journal.noteWorkload('w', 'in doubt');
  journal.begin();
  await settled();
  await settled();
  journal.noteKey(1, Buffer.from('afterwards'), 0, 10);
  journal.flush();
  const { keys, everything } = open().left;
  assert.deepEqual([keys.length, keys.at(-1)!.key.toString(), everything], [names.length + 1, 'afterwards', false]);
  journal.close();
});
