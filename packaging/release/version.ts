/** The next version: what `.changeset` asks for, in every file that has it, and its section of the changelog. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../verification/rehearsal/run.js';
import { released, type Change } from './changelog.js';

interface Status {
  readonly changesets: readonly {
    readonly summary: string;
    readonly releases: readonly { readonly type: Change['kind'] }[];
  }[];
}

/**
 * Without changesets, the version that package.json has is released: the first one.
 * @param root of the repository
 * @returns the version
 */
export async function makeVersion(root: string, now: Date): Promise<string> {
  const changes = await readChanges(root);
  if (changes.length > 0) await run(['npx', '--no-install', 'changeset', 'version'], { cwd: root });
  const edit = (path: string, change: (text: string) => string): void =>
    writeFileSync(join(root, path), change(readFileSync(join(root, path), 'utf8')));
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  edit('CHANGELOG.md', (text) => released(text, version, now.toISOString().slice(0, 10), changes));
  const first = (text: string): string => text.replace(/"version": ".*"/, `"version": "${version}"`);
  edit('counters/package.json', first);
  // Its own, and that of the package at its root.
  edit('package-lock.json', (text) => first(text).replace(/("": \{\s+"name": .*\s+"version": ).*/, `$1"${version}",`));
  edit('charts/shadow-proxy/Chart.yaml', (text) =>
    text.replace(/^version: .*$/m, `version: ${version}`).replace(/^appVersion: .*$/m, `appVersion: "${version}"`),
  );
  return version;
}

async function readChanges(root: string): Promise<Change[]> {
  const folder = mkdtempSync(join(tmpdir(), 'changesets-'));
  try {
    const file = join(folder, 'status.json');
    await run(['npx', '--no-install', 'changeset', 'status', '--output', file], { cwd: root });
    const { changesets } = JSON.parse(readFileSync(file, 'utf8')) as Status;
    return changesets.map(({ summary, releases }) => ({ kind: releases[0].type, text: summary }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
