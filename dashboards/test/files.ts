/** What lies in dashboards/ and runbooks/, read. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const PROMETHEUS = join(ROOT, 'dashboards/prometheus');
export const DASHBOARDS = join(ROOT, 'dashboards/grafana');
export const RUNBOOKS = join(ROOT, 'runbooks');

export interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export type Alert = Rule & { readonly alert: string };

interface UnitTest {
  readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[];
}

/** Paths of the files in a folder that end so; none where the folder is not there. */
export const filesIn = (folder: string, ending: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith(ending))
        .sort()
        .map((name) => join(folder, name))
    : [];

export const read = (path: string): string => readFileSync(path, 'utf8');
export const readYaml = <T>(path: string): T => parse(read(path)) as T;

export const RULE_FILES = filesIn(join(PROMETHEUS, 'rules'), '.rules.yml');
export const UNIT_TEST_FILES = filesIn(join(PROMETHEUS, 'test'), '.test.yml');

export const rules = (): Rule[] =>
  RULE_FILES.flatMap((path) => readYaml<{ groups: { rules: Rule[] }[] }>(path).groups.flatMap((group) => group.rules));
export const alerts = (): Alert[] => rules().filter((rule): rule is Alert => rule.alert !== undefined);
export const unitTests = (): UnitTest['alert_rule_test'][number][] =>
  UNIT_TEST_FILES.flatMap((path) =>
    readYaml<{ tests: UnitTest[] }>(path).tests.flatMap((each) => each.alert_rule_test),
  );
