/** The simulated disk: what outlives a loss of power, and the codes of errors. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Disk } from '../../world/disk.js';
import { Random } from '../../world/random.js';

function newDisk(seed: number): Disk {
  const disk = new Disk(new Random(seed), () => 0);
  disk.mkdir('/state');
  return disk;
}

function write(disk: Disk, path: string, flags: 'w' | 'a+', text: string, syncs: boolean): void {
  const file = disk.open(path, flags);
  disk.write(file, Buffer.from(text), 0, text.length, null);
  if (syncs) disk.sync(file);
  disk.close(file);
}

function syncFolder(disk: Disk): void {
  const folder = disk.open('/state', 'r');
  disk.sync(folder);
  disk.close(folder);
}

test('What was synced outlives a power failure; what was added behind is kept up to some byte', () => {
  const lengths = new Set<number>();
  for (let seed = 1; seed <= 40; seed++) {
    const disk = newDisk(seed);
    write(disk, '/state/journal', 'a+', 'first', true);
    syncFolder(disk);
    write(disk, '/state/journal', 'a+', ' second', false);
    disk.losePower();
    const text = disk.readFile('/state/journal').toString();
    assert.ok('first second'.startsWith(text) && text.startsWith('first'), text);
    lengths.add(text.length);
  }
  assert.ok(lengths.size > 4, `lengths: ${[...lengths].join(' ')}`);
});

test('A rename that was not synced outlives a power failure, or does not: the old file or the new one is there', () => {
  const found = new Set<string>();
  for (let seed = 1; seed <= 40; seed++) {
    const disk = newDisk(seed);
    write(disk, '/state/state.json', 'w', 'old', true);
    syncFolder(disk);
    write(disk, '/state/new.json', 'w', 'new', true);
    disk.rename('/state/new.json', '/state/state.json');
    disk.losePower();
    found.add(disk.readFile('/state/state.json').toString());
  }
  assert.deepEqual([...found].sort(), ['new', 'old']);
});

test('Errors have the codes of the system', () => {
  const disk = newDisk(1);
  assert.throws(() => disk.open('/state/none', 'r'), { code: 'ENOENT' });
  assert.throws(() => disk.readFile('/state'), { code: 'EISDIR' });
  assert.throws(() => disk.close(99), { code: 'EBADF' });
  assert.throws(() => disk.list('/none'), { code: 'ENOENT' });
  disk.faults.fullShare = 1;
  assert.throws(() => write(disk, '/state/a', 'w', 'text', false), { code: 'ENOSPC' });
  assert.equal(disk.failures, 1);
});
