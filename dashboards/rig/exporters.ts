/** Which metrics the exporters have. */
import { readFileSync } from 'node:fs';
import { scraped, type Stack } from './stack.js';

export const EXPORTERS_FILE = new URL('../../../dashboards/rig/exporters.json', import.meta.url);

/** Names of metrics, sorted: of redis_exporter on Redis and on KeyDB, and of node_exporter. */
export interface ExporterNames {
  readonly redis: readonly string[];
  readonly keydb: readonly string[];
  readonly node: readonly string[];
}

export const knownNames = (): ExporterNames => JSON.parse(readFileSync(EXPORTERS_FILE, 'utf8')) as ExporterNames;

/** What they give now. */
export async function namesOf(stack: Stack): Promise<ExporterNames> {
  await scraped(stack);
  const names = async (labels: string, prefix: RegExp): Promise<string[]> =>
    (await stack.prometheus.labelValues('__name__', `{${labels}}`)).filter((name) => prefix.test(name)).toSorted();
  return {
    redis: await names('job="redis-exporter",side="source"', /^redis_/),
    keydb: await names('job="redis-exporter",side="target"', /^redis_/),
    node: await names('job="node"', /^node_/),
  };
}
