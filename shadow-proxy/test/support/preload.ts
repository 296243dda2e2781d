/** A library in C that a process of a test loads before the others, so that some of its calls of the system do less. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { needs } from './needs.js';

export interface Preload {
  /** Removed after the test. */
  readonly directory: string;
  /** For the process that loads it. */
  readonly env: NodeJS.ProcessEnv;
}

/** Null, with the test skipped, where there is no C compiler. */
export async function preload(t: TestContext, source: string): Promise<Preload | null> {
  if (!(await needs(t, 'cc'))) return null;
  const directory = mkdtempSync(join(tmpdir(), 'preload-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const [file, library] = ['library.c', 'library.so'].map((name) => join(directory, name));
  writeFileSync(file, source);
  await promisify(execFile)('cc', ['-shared', '-fPIC', '-O1', '-o', library, file]);
  return { directory, env: { LD_PRELOAD: library } };
}
