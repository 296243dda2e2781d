/** A disk that is small enough to be filled. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { lacking } from './needs.js';

/** The disk's directory, removed after the test; null, with the test skipped, where no disk can be mounted. */
export function smallDisk(t: TestContext, size: string): string | null {
  const directory = mkdtempSync(join(tmpdir(), 'disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', directory], { stdio: 'pipe' });
  } catch {
    rmSync(directory, { recursive: true });
    t.skip(lacking('small-disk'));
    return null;
  }
  t.after(() => {
    execFileSync('umount', ['--lazy', directory]);
    rmSync(directory, { recursive: true, force: true });
  });
  return directory;
}

/** Leaves nothing free. */
export function fillDisk(disk: string): void {
  const { bavail, bsize } = statfsSync(disk);
  try {
    writeFileSync(join(disk, 'filler'), Buffer.alloc((bavail + 1) * bsize));
  } catch (problem) {
    assert.match(String(problem), /ENOSPC/);
  }
}

export const freeDisk = (disk: string): void => rmSync(join(disk, 'filler'));
