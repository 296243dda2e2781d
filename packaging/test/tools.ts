/** Programs that check the chart and the workflows; `packaging/tools.sh` installs them. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

const FOLDER = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'redis-to-keydb/tools');

/** Null where neither the PATH nor the folder of the tools has it. */
export const toolAt = (name: string): string | null =>
  [...(process.env.PATH ?? '').split(delimiter), join(FOLDER, 'bin')]
    .map((folder) => join(folder, name))
    .find(existsSync) ?? null;

/** Where kubeconform finds the schemas of Kubernetes. */
export const SCHEMAS = join(FOLDER, 'kubernetes/{{ .ResourceKind }}{{ .KindSuffix }}.json');

/** Why a test that needs them is skipped; false where all are there. `schemas` are those of Kubernetes. */
export function without(...names: readonly string[]): string | false {
  const missing = names.filter((name) => (name === 'schemas' ? !existsSync(dirname(SCHEMAS)) : toolAt(name) === null));
  return missing.length > 0 && `NOT TESTED: no ${missing.join(', ')} on this machine: run sh packaging/tools.sh`;
}
