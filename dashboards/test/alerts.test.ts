/**
 * Prometheus' rules, alerts and configuration: checked by Prometheus' own tools, and by what the kit asks of an alert.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import {
  alerts,
  DASHBOARDS,
  filesIn,
  PROMETHEUS,
  read,
  ROOT,
  RULE_FILES,
  rules,
  RUNBOOKS,
  UNIT_TEST_FILES,
  unitTests,
} from './files.js';
import { run } from './run.js';
import { needs } from '../../shadow-proxy/test/support/needs.js';

/** Prometheus' folder as compose.yaml mounts it. */
function asMounted(body: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'prometheus-'));
  try {
    cpSync(join(PROMETHEUS, 'prometheus.yml'), join(folder, 'prometheus.yml'));
    cpSync(join(PROMETHEUS, 'rules'), join(folder, 'rules'), { recursive: true });
    cpSync(join(ROOT, 'dashboards/compose/targets'), join(folder, 'targets'), { recursive: true });
    cpSync(join(ROOT, 'dashboards/compose/admin-token'), join(folder, 'tokens/shadow-proxy'));
    body(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('Prometheus takes the configuration with its rules, targets and token, and refuses a rule that is wrong', async (t) => {
  if (!(await needs(t, 'promtool'))) return;
  asMounted((folder) => {
    const { status, said } = run('promtool', 'check', 'config', join(folder, 'prometheus.yml'));
    assert.equal(status, 0, said);
    assert.equal(said.match(/SUCCESS: \d+ rules found/g)?.length, RULE_FILES.length, said);
    writeFileSync(
      join(folder, 'rules/wrong.rules.yml'),
      'groups: [{ name: wrong, rules: [{ alert: A, expr: "rate(up" }] }]\n',
    );
    assert.notEqual(run('promtool', 'check', 'config', join(folder, 'prometheus.yml')).status, 0);
  });
});

test('every alert fires when it should, with its sentence, and does not when it should not', async (t) => {
  if (!(await needs(t, 'promtool'))) return;
  const { status, said } = run('promtool', 'test', 'rules', ...UNIT_TEST_FILES);
  assert.equal(status, 0, said);
  assert.equal(said.match(/SUCCESS/g)?.length, UNIT_TEST_FILES.length, said);
});

test('every alert has a unit test in which it fires, and one in which it does not', () => {
  const tested = unitTests();
  const names = new Set(alerts().map(({ alert }) => alert));
  assert.ok(names.size >= 20, `${names.size}`);
  for (const name of names) {
    const ofAlert = tested.filter(({ alertname }) => alertname === name);
    assert.ok(
      ofAlert.some((each) => each.exp_alerts.length > 0),
      `${name} never fires`,
    );
    assert.ok(
      ofAlert.some((each) => each.exp_alerts.length === 0),
      `${name} always fires`,
    );
  }
  assert.deepEqual(
    tested.filter(({ alertname }) => !names.has(alertname)),
    [],
  );
});

test('every alert says how bad it is, what happens to users, and what to do', () => {
  for (const { alert, labels, annotations = {}, ...rule } of alerts()) {
    assert.ok(['critical', 'warning'].includes(labels?.severity ?? ''), `${alert}: severity`);
    assert.match(rule.for ?? '', /^\d+[sm]$/, `${alert}: for`);
    assert.ok(annotations.summary.length > 30 && annotations.description.length > 40, alert);
    assert.equal(annotations.runbook_url, `{{ $externalLabels.runbooks }}/${alert}.md`);
    const sections = [...read(join(RUNBOOKS, `${alert}.md`)).matchAll(/^#+ (.*)$/gm)].map(([, title]) => title);
    assert.deepEqual(sections, [alert, 'Meaning', 'Impact', 'Diagnosis', 'Mitigation'], `runbooks/${alert}.md`);
  }
});

test('what is recorded is named as Prometheus names it, and asked for by an alert or a dashboard', () => {
  const asked = [...alerts().map(({ expr }) => expr), ...filesIn(DASHBOARDS, '.json').map(read)].join('\n');
  const recorded = rules().flatMap(({ record }) => record ?? []);
  for (const name of recorded) {
    assert.match(name, /^[a-z]+:[a-z_]+:[a-z0-9_]+$/);
    assert.ok(asked.includes(name), `nobody asks for ${name}`);
  }
});

test('Alertmanager takes the example', async (t) => {
  if (!(await needs(t, 'amtool'))) return;
  const { status, said } = run('amtool', 'check-config', join(PROMETHEUS, 'alertmanager.example.yml'));
  assert.equal(status, 0, said);
});

test('each file of unit tests is named after its rules', () => {
  const names = RULE_FILES.map((path) => basename(path, '.rules.yml')).filter((name) => name !== 'recording');
  assert.deepEqual(
    UNIT_TEST_FILES.map((path) => basename(path, '.test.yml')),
    names,
  );
});
