/**
 * The JSON Schema of the chart's values: the chart's own, and the plan's, generated from the schema that the proxy
 * checks a plan by (`npm run schema`). Draft 7, which every release of Helm 3 reads.
 */
import { z } from 'zod';
import { planJsonSchema } from '../../shadow-proxy/src/plan/schema.js';

interface Node {
  title?: string;
  pattern?: string;
  not?: Node;
  description?: string;
  properties?: Record<string, Node>;
  items?: Node;
  anyOf?: Node[];
  required?: string[];
  [keyword: string]: unknown;
}

/** Of the plan, and of each shard: the chart sets them. */
const OF_THE_CHART = ['admin', 'state'];
/** In a pod: every address of it, and a port that the Service can name. */
const LISTEN = String.raw`^rediss?://(0\.0\.0\.0|\[::\]):[1-9][0-9]*$`;
/** A password in a URL that is no `${NAME}`. */
const LITERAL_PASSWORD = String.raw`://[^@]*:([^$@][^@]*|\$([^{@][^@]*)?)@`;
/** A receiver whose URL is its secret, in the clear: `urlFile`, or `${NAME}`, is left. */
const SECRET_URL = {
  required: ['kind', 'url'],
  properties: { kind: { const: 'slack' }, url: { not: { pattern: String.raw`\$\{` } } },
};
const SHARD_NAME = '^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$';

const secretName = z.string().regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/);
const text = z.string();
const mapping = z.looseObject({});
const mappings = z.array(mapping);
const constraint = z.enum(['DoNotSchedule', 'ScheduleAnyway']);

const values = z.strictObject({
  global: mapping.optional(),
  image: z.strictObject({
    repository: z.string().min(1),
    tag: text,
    digest: z.string().regex(/^(sha256:[0-9a-f]{64})?$/),
    pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']),
  }),
  imagePullSecrets: z.array(secretName),
  clusterShards: z.array(z.string().regex(new RegExp(SHARD_NAME))),
  replicas: z.int().min(1).max(5),
  extraArgs: z.array(z.string().regex(/^--/)),
  extraEnv: mappings,
  extraVolumes: mappings,
  extraVolumeMounts: mappings,
  adminToken: z.strictObject({ secretName, key: z.string().min(1) }),
  secrets: z.array(secretName),
  environmentFrom: z.array(secretName),
  state: z.strictObject({ size: z.string().regex(/^[1-9][0-9]*[KMGT]i?$/), storageClassName: text }),
  service: z.strictObject({ type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']), annotations: mapping }),
  resources: mapping,
  podDisruptionBudget: z.strictObject({ enabled: z.boolean(), minAvailable: z.int().min(0).max(1) }),
  networkPolicy: z.strictObject({
    enabled: z.boolean(),
    clients: mappings.min(1),
    monitoring: mappings,
    servers: mappings,
  }),
  serviceMonitor: z.strictObject({ enabled: z.boolean(), interval: z.string().regex(/^[0-9]+s$/), labels: mapping }),
  prometheusRule: z.strictObject({
    enabled: z.boolean(),
    runbooks: z.string().regex(/^(https?:\/\/.*[^/])?$/),
    labels: mapping,
  }),
  dashboards: z.strictObject({ enabled: z.boolean(), labels: mapping, annotations: mapping }),
  annotations: mapping,
  podAnnotations: mapping,
  podLabels: mapping,
  nodeSelector: mapping,
  tolerations: mappings,
  affinity: mapping,
  priorityClassName: text,
  spread: z.strictObject({ node: constraint, zone: constraint }),
});

/** The whole of `charts/shadow-proxy/values.schema.json`. */
export function valuesSchema(): object {
  const { properties, required, ...rest } = z.toJSONSchema(values, { target: 'draft-7', io: 'input' });
  return {
    ...rest,
    title: 'Values of the chart shadow-proxy',
    properties: { ...properties, plan: inPod(planJsonSchema()) },
    required: [...required!, 'plan'],
  };
}

/** The plan as it may be in a pod. */
function inPod({ $schema: _, ...plan }: Node): Node {
  const { shards, cluster, notify, ...others } = without(plan.properties!, OF_THE_CHART);
  const shard = without(shards.items!.properties!, OF_THE_CHART);
  const ofShard = { ...shards.items, properties: { ...shard, name: { ...shard.name, pattern: SHARD_NAME } } };
  const ofCluster = {
    ...cluster,
    properties: without(cluster.properties!, OF_THE_CHART),
    // By default clients are sent to `listen`, which leads them nowhere.
    required: [...cluster.required!, 'announce'],
  };
  return restricted({
    ...plan,
    properties: {
      ...others,
      shards: { ...shards, items: ofShard },
      cluster: ofCluster,
      notify: { ...notify, items: { ...notify.items, not: SECRET_URL } },
    },
  });
}

const without = (all: Record<string, Node>, names: readonly string[]): Record<string, Node> =>
  Object.fromEntries(Object.entries(all).filter(([name]) => !names.includes(name)));

/** Refuses passwords in URLs, and addresses that are no pod's. */
function restricted(node: Node): Node {
  const result = { ...node };
  if (node.items) result.items = restricted(node.items);
  if (node.anyOf) result.anyOf = node.anyOf.map(restricted);
  if (node.title === 'URL') result.not = { pattern: LITERAL_PASSWORD };
  if (node.properties)
    result.properties = Object.fromEntries(
      Object.entries(node.properties).map(([name, field]) => [name, restrictedField(name, field)]),
    );
  return result;
}

function restrictedField(name: string, field: Node): Node {
  if (field.type !== 'string') return restricted(field);
  if (name === 'listen') return { ...field, pattern: LISTEN };
  return name === 'url' ? { ...field, not: { pattern: LITERAL_PASSWORD } } : restricted(field);
}
