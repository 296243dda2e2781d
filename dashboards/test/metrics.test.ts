/** Every metric that is asked for is there, and every one that is there is asked for, or listed with a reason. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Metrics, METRICS } from '../../shadow-proxy/src/telemetry/metrics.js';
import { DASHBOARDS, filesIn, read, readYaml, ROOT, RULE_FILES, RUNBOOKS } from './files.js';

const OURS = new Set(METRICS.map(({ name }) => name));
const namesIn = (texts: readonly string[], pattern: RegExp): Set<string> =>
  new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map(([name]) => name)));

const dashboards = filesIn(DASHBOARDS, '.json').map(read);
// docs/metrics.md is made of the table: it has all of them.
const pages = [
  join(ROOT, 'README.md'),
  ...filesIn(join(ROOT, 'docs'), '.md').filter((path) => !path.endsWith('metrics.md')),
  ...filesIn(RUNBOOKS, '.md'),
].map(read);
const asking = [...RULE_FILES.map(read), ...dashboards];

test('every metric of the proxy that a rule, a dashboard or a document names is there', () => {
  // Not those that are recorded (shard:shadow_proxy_…).
  const named = namesIn([...asking, ...pages], /(?<![\w:])shadow_proxy_[a-z_]+[a-z](?![\w:])/g);
  assert.ok(named.size > 20, `${named.size}`);
  for (const name of named) assert.ok(OURS.has(name), `there is no ${name}`);
});

test('every metric that the proxy exports is used by a rule, a dashboard or a document, or listed as not needed', async (t) => {
  const listed = readYaml<Record<string, string>>(join(ROOT, 'dashboards/metrics-not-needed.yaml'));
  const all = [
    ...(await new Metrics(() => ({ shards: [], waiting: [], receivers: [] })).text()).matchAll(/^# HELP (\S+)/gm),
  ].map(([, name]) => name);
  assert.ok(OURS.size < all.length);
  for (const [name, reason] of Object.entries(listed))
    assert.ok(all.includes(name) && reason.length > 10, `${name} is listed, and not there`);
  if (dashboards.length === 0) {
    process.stderr.write(`NOT TESTED: "${t.name}" needs the dashboards in dashboards/grafana\n`);
    return t.skip('NOT TESTED: there are no dashboards in dashboards/grafana');
  }
  const asked = [...asking, ...pages].join('\n');
  const isAsked = (name: string): boolean => new RegExp(`(?<![\\w])${name}(?!\\w)`).test(asked);
  assert.deepEqual(
    all.filter((name) => !isAsked(name) && !(name in listed)),
    [],
    'use them, or list them in dashboards/metrics-not-needed.yaml',
  );
  assert.deepEqual(Object.keys(listed).filter(isAsked), [], 'listed as not needed, and used');
});
