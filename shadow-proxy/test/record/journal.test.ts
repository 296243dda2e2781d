import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Journal } from '../../src/record/journal.js';
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
