/** What a release refuses, and that its workflows run what is there. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { run } from '../../verification/rehearsal/run.js';
import { ROOT } from '../npm/pack.js';
import { released } from '../release/changelog.js';
import { problemsOf, readRelease, type Release } from '../release/check.js';
import { missing, toolAt } from '../../shadow-proxy/test/support/needs.js';

const GOOD: Release = {
  kit: { version: '1.2.3', repository: 'https://example.com' },
  counters: { version: '1.2.3', repository: 'https://example.com' },
  chart: { version: '1.2.3', appVersion: '1.2.3' },
  changelog: '# Changelog\n\n## Unreleased\n\n## 1.2.3 (2026-01-02)\n',
  changesets: [],
  tag: 'v1.2.3',
  base: `node:24-slim@sha256:${'0'.repeat(64)}`,
};
const refused = (change: Partial<Release>): string => problemsOf({ ...GOOD, ...change }).join('\n');

test('a release is refused without a repository, a digest of the base, or with versions that differ', () => {
  assert.equal(refused({}), '');
  assert.match(refused({ kit: { version: '1.2.3' } }), /^package\.json has no "repository": set it to the address/);
  assert.match(refused({ counters: { version: '1.2.3' } }), /^counters\/package\.json has no "repository"/);
  for (const base of ['', 'node:24-slim', 'node@sha256:00'])
    assert.match(refused({ base }), /^BASE_IMAGE is .*: set this variable .*@sha256:…$/, base);
  assert.match(refused({ tag: 'v1.2.4' }), /^the tag is v1\.2\.4, and package\.json has 1\.2\.3/);
  assert.match(refused({ tag: '' }), /^the tag is missing/);
  assert.match(refused({ chart: { version: '1.2.3', appVersion: '1.2.2' } }), /^appVersion in Chart\.yaml is 1\.2\.2/);
  assert.match(refused({ chart: { version: '1.2.2', appVersion: '1.2.3' } }), /^version in Chart\.yaml is 1\.2\.2/);
  assert.match(refused({ changelog: '# Changelog\n\n## 1.2.30\n## 1x2.3\n' }), /^CHANGELOG\.md has no section 1\.2\.3/);
  assert.match(refused({ changesets: ['a.md'] }), /^\.changeset has a\.md: run npm run release:version$/);
});

test('the versions of this commit agree', () => {
  const release = readRelease(ROOT, {});
  const { version } = release.kit;
  assert.deepEqual([release.counters.version, release.chart.version, release.chart.appVersion], Array(3).fill(version));
});

test('a version gets a section of the changelog: what was not released, and its changesets', () => {
  const before =
    '# Changelog\n\nAll.\n\n## Unreleased\n\n### Added\n\n- One\n  line.\n\n### Fixed\n\n- Two.\n\n## 1.0.0 (2026-01-01)\n\n- Old.\n';
  const changes = [
    { kind: 'minor', text: 'Three, in\ntwo lines.\n' },
    { kind: 'major', text: 'Four.' },
  ] as const;
  const after = released(before, '2.0.0', '2026-02-03', changes);
  assert.equal(
    after,
    '# Changelog\n\nAll.\n\n## 2.0.0 (2026-02-03)\n\n### Added\n\n- One\n  line.\n- Three, in\n  two lines.\n\n### Fixed\n\n- Two.\n\n### Changed\n\n- Four.\n\n## 1.0.0 (2026-01-01)\n\n- Old.\n',
  );
  assert.match(released(after, '2.0.1', '2026-02-04', []), /All\.\n\n## 2\.0\.1 \(2026-02-04\)\n\n## 2\.0\.0/);
});

interface Workflow {
  readonly jobs: Readonly<Record<string, { readonly steps?: readonly Step[] }>>;
}
interface Step {
  readonly uses?: string;
  readonly run?: string;
}

const FOLDER = join(ROOT, '.github/workflows');
const workflows = readdirSync(FOLDER).map((file) => ({
  file,
  jobs: Object.values((parse(readFileSync(join(FOLDER, file), 'utf8')) as Workflow).jobs),
}));

test('every action of the workflows is pinned by its version, and every script that they run is there', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object };
  const steps = workflows.flatMap(({ jobs }) => jobs.flatMap((job) => job.steps ?? []));
  const used = steps.flatMap(({ uses }) => uses ?? []);
  assert.ok(used.length > 10, `${used.length}`);
  for (const action of used) assert.match(action, /^[\w-]+\/[\w-]+@v\d+\.\d+\.\d+$/);
  const named = steps.flatMap(({ run: text = '' }) =>
    [...text.matchAll(/\bnpm run ([\w:-]+)/g)].map(([, name]) => name),
  );
  assert.deepEqual(named, ['release:check', 'release:files', 'demo']);
  for (const name of named) assert.ok(name in scripts, name);
});

test('nothing is published before the check and the tests', () => {
  const release = (
    parse(readFileSync(join(FOLDER, 'release.yml'), 'utf8')) as { jobs: Record<string, { needs?: string | string[] }> }
  ).jobs;
  const before = (job: string): string[] => {
    const needs = [release[job].needs ?? []].flat();
    return [...needs, ...needs.flatMap(before)];
  };
  for (const job of ['files', 'npm', 'image', 'chart', 'publish'])
    for (const first of ['check', 'test']) assert.ok(before(job).includes(first), `${job} needs ${first}`);
});

test('the workflows are right', { skip: await missing('actionlint') }, async () => {
  // The same on every machine, whatever else it has.
  await run([toolAt('actionlint')!, '-no-color', '-shellcheck=', '-pyflakes='], { cwd: ROOT });
});
