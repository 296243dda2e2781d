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

test('What a process has read stays as it was while the process lives', () => {
  const disk = newDisk(1);
  const [first, second] = [{ alive: true }, { alive: true }];
  write(disk, '/state/a', 'w', 'one', false);
  const before = disk.readFile('/state/a', first);
  assert.equal(disk.readFile('/state/a', second), before, 'nothing has changed');
  write(disk, '/state/a', 'w', 'two', false);
  const after = disk.readFile('/state/a', second);
  assert.deepEqual([before.toString(), after.toString()], ['one', 'two']);
  first.alive = false;
  write(disk, '/state/a', 'w', 'six', false);
  assert.equal(disk.readFile('/state/a', second).toString(), 'six');
  assert.deepEqual([before.toString(), after.toString()], ['one', 'two'], 'the second one lives, and has read both');
  second.alive = false;
  write(disk, '/state/a', 'w', 'ten', false);
  const kept = disk.readFile('/state/a');
  assert.equal(disk.readFile('/state/a', { alive: true }).toString(), 'ten');
  write(disk, '/state/a', 'w', 'new', false);
  disk.readFile('/state/a', { alive: true });
  assert.equal(kept.toString(), 'ten', 'a reader that is none of these keeps what it has read');
});

test('A buffer that is used again has nothing of the file before', () => {
  const disk = newDisk(1);
  const reader = { alive: true };
  write(disk, '/state/a', 'w', 'long text', false);
  const before = disk.readFile('/state/a', reader);
  reader.alive = false;
  write(disk, '/state/b', 'w', 'x', false);
  const file = disk.open('/state/b', 'a+');
  disk.truncate(file, before.length);
  disk.rename('/state/b', '/state/a');
  const after = disk.readFile('/state/a', { alive: true });
  assert.equal(after, before, 'nobody keeps it');
  assert.equal(after.toString(), 'x\0\0\0\0\0\0\0\0');
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

test('Who follows a file sees what was added, and whether what was there has changed', () => {
  const disk = newDisk(1);
  assert.equal(disk.follow('/state/journal'), null);
  const descriptor = disk.open('/state/journal', 'w');
  disk.truncate(descriptor, 100);
  disk.write(descriptor, Buffer.from('one'), 0, 3, 0);
  const first = disk.follow('/state/journal')!;
  assert.equal(String(first.bytes), 'one', 'zeros behind it are left out');
  disk.write(descriptor, Buffer.from(' two'), 0, 4, 3);
  const second = disk.follow('/state/journal')!;
  assert.deepEqual([String(second.bytes), second.rewrites], ['one two', first.rewrites]);
  const changes = [
    () => disk.write(descriptor, Buffer.from('O'), 0, 1, 0),
    () => disk.truncate(descriptor, 3),
    () => disk.losePower(),
    () => disk.close(disk.open('/state/journal', 'w')),
  ];
  for (const change of changes) {
    const before = disk.follow('/state/journal')!;
    change();
    const after = disk.follow('/state/journal');
    assert.ok(after === null || after.rewrites !== before.rewrites, String(change));
    if (after === null) disk.open('/state/journal', 'w');
  }
  disk.damage('/state/journal', (bytes) => bytes);
  assert.notEqual(disk.follow('/state/journal')!.file, second.file);
});
