/**
 * The shape of a plan file: one definition for the validator and for the JSON Schema that editors complete from.
 * Rules that a shape cannot express (two shards on one address, a percent without `live`) are in `check.ts`.
 */
import * as z from 'zod';
import { SLOTS } from '../route/slot.js';
import { STAGES } from '../route/stage.js';
import { PROXY_PROTOCOL_MODES } from './endpoint.js';
import {
  ACCEPTABLE_SETTINGS,
  COUNTER_LAYOUTS,
  LANE_NAMES,
  NOTIFY_EVENTS,
  RECEIVER_KINDS,
  WIDER_COMMANDS,
  WORKLOAD_CLASSES,
  type AcceptableSetting,
  type WiderRight,
} from './plan.js';

const name = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
    'letters, digits, dot, dash and underscore, at most 63, the first a letter or digit',
  )
  .meta({ title: 'name' });
const path = z.string().min(1).meta({ title: 'path' });
const patterns = z.array(z.string().min(1)).min(1).meta({ title: 'patterns' });
const milliseconds = z.number().int().positive().meta({ title: 'milliseconds' });
const percent = z
  .number()
  .min(0)
  .max(100)
  .describe('Share of the hash slots that are live, in percent; only with stage live. Default: 100');

const UNITS = { '': 1, B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };
const bytes = z
  .union([
    z.number().int().positive(),
    z.string().regex(/^[1-9]\d* ?(B|KiB|MiB|GiB)?$/, 'a whole number of B, KiB, MiB or GiB, such as 64MiB'),
  ])
  .transform((value) => {
    if (typeof value === 'number') return value;
    const [, digits, unit = ''] = /^(\d+) ?([A-Za-z]*)$/.exec(value)!;
    return Number(digits) * UNITS[unit as keyof typeof UNITS];
  })
  .meta({ title: 'size' });

const owns = z.union([
  patterns,
  z.strictObject({
    slots: z
      .string()
      .regex(/^\d+(-\d+)?( *, *\d+(-\d+)?)*$/, 'hash slots such as "0-5460" or "0-99,200"')
      .describe('Hash slots as in Redis Cluster; a key with a {hash tag} is in the slot of its tag'),
  }),
]);

const endpointUrl = z
  .string()
  .min(1)
  .meta({ title: 'URL' })
  .describe(
    'redis://[user[:password]@]host[:port][/db], rediss://… or redis+sentinel://…@h1:p1,h2:p2/master[/db]; ${NAME} is an environment variable',
  );
const endpoint = z.union([
  endpointUrl,
  z.strictObject({
    url: endpointUrl,
    passwordFile: path.describe("File with the server's password").optional(),
    sentinelUsername: z.string().min(1).describe('User at the Sentinels, if they require one').optional(),
    sentinelPasswordFile: path.describe("File with the Sentinels' password").optional(),
  }),
]);

const clientTls = z.strictObject({
  ca: path
    .describe(
      'PEM file of the CA that signed the certificates of the server and its Sentinels. Default: the CAs that Node.js trusts',
    )
    .optional(),
  cert: path.describe("PEM file of the proxy's own certificate").optional(),
  key: path.describe("PEM file of the proxy's own key").optional(),
  servername: z
    .string()
    .min(1)
    .describe('Name that the certificates of the server and its Sentinels must carry. Default: the host in the URL')
    .optional(),
});

const listenTls = z.strictObject({
  cert: path.describe('PEM file of the certificate that clients see'),
  key: path.describe("PEM file of the certificate's key"),
  ca: path.describe("PEM file of the CA that signed the clients' certificates").optional(),
  requireClientCert: z.boolean().default(false).describe('Refuse clients without a certificate signed by `ca`'),
});

const admin = z.strictObject({
  listen: z
    .string()
    .default('127.0.0.1:9400')
    .describe('host:port; on another address than loopback a token is required'),
  announce: z
    .array(z.string().min(1))
    .min(1)
    .describe(
      'host:port at which `shadow-compare` reaches this address from another machine; {shard} stands for the name of the shard. With a standby, the addresses of both proxies. Default: listen',
    )
    .optional(),
  token: z.string().min(1).describe('Bearer token, or ${NAME} for an environment variable').optional(),
  tokenFile: path.describe('File with the bearer token').optional(),
});

/** The defaults of `gates`. */
export const GATES = {
  minCompared: 100_000,
  minMinutes: 60,
  maxMismatches: 0,
  maxP99Ratio: 1.2,
  maxAllowedShare: 0.25,
  maxInconclusiveShare: 0.001,
  maxVerifyHours: 24,
  unsupportedHours: 24,
  allowUnsupported: {},
  acceptSettings: [] as AcceptableSetting[],
  acceptRights: [] as WiderRight[],
  drill: true,
  steps: true,
};
const gate = {
  minCompared: z
    .number()
    .int()
    .nonnegative()
    .describe('Pairs of replies that must have been compared since the workload entered its stage'),
  minMinutes: z
    .number()
    .nonnegative()
    .describe('Minutes in which replies must have been compared since the workload entered its stage'),
  maxMismatches: z
    .number()
    .int()
    .nonnegative()
    .describe('Mismatches that are allowed since the workload entered its stage'),
  maxP99Ratio: z
    .number()
    .positive()
    .describe(
      'Maximum p99 latency of the target divided by that of the source (median over the minutes); values below 1 ms count as 1 ms',
    ),
  maxAllowedShare: z
    .number()
    .min(0)
    .max(1)
    .describe('Maximum share of the pairs of replies with an allowed difference, so that rules cannot hide faults'),
  maxInconclusiveShare: z
    .number()
    .min(0)
    .max(1)
    .describe('Maximum share of the pairs of replies that could not be compared'),
  maxVerifyHours: z
    .number()
    .positive()
    .describe('Maximum age, in hours, of the last verification of all keys, which must have found no difference'),
  unsupportedHours: z
    .number()
    .positive()
    .describe('Hours in which no client may have used a command that only one server supports'),
  allowUnsupported: z
    .record(z.string().min(1), z.string().min(1))
    .describe(
      'Unsupported commands that are allowed: they close neither the gate `unsupported` nor `mismatches`. They are named as the gate names them (`lolwut`, `command info`), each with the reason',
    ),
  acceptSettings: z
    .array(z.enum(ACCEPTABLE_SETTINGS))
    .describe(
      'Settings that may differ between the servers, or be unknown, without blocking the gate `servers`; `unreadable` stands for all those that a server does not show',
    ),
  acceptRights: z
    .array(z.enum(WIDER_COMMANDS))
    .describe(
      'Commands that users with key patterns may use although KeyDB does not check the patterns for them as Redis 7 does, without blocking the gate `users`',
    ),
  drill: z.boolean().describe('Whether a rollback drill is required before live'),
  steps: z.boolean().describe('Whether live must be reached in the steps 1, 10, 50 and 100 % of the keys'),
};
const gates = z.strictObject({
  minCompared: gate.minCompared.default(GATES.minCompared),
  minMinutes: gate.minMinutes.default(GATES.minMinutes),
  maxMismatches: gate.maxMismatches.default(GATES.maxMismatches),
  maxP99Ratio: gate.maxP99Ratio.default(GATES.maxP99Ratio),
  maxAllowedShare: gate.maxAllowedShare.default(GATES.maxAllowedShare),
  maxInconclusiveShare: gate.maxInconclusiveShare.default(GATES.maxInconclusiveShare),
  maxVerifyHours: gate.maxVerifyHours.default(GATES.maxVerifyHours),
  unsupportedHours: gate.unsupportedHours.default(GATES.unsupportedHours),
  allowUnsupported: gate.allowUnsupported.default(GATES.allowUnsupported),
  acceptSettings: gate.acceptSettings.default(GATES.acceptSettings),
  acceptRights: gate.acceptRights.default(GATES.acceptRights),
  drill: gate.drill.default(GATES.drill),
  steps: gate.steps.default(GATES.steps),
});
const workloadGates = z.strictObject(gate).partial().describe("The workload's own gates; a missing gate is the plan's");

const shardTls = z
  .strictObject({
    listen: listenTls.describe('For clients; use it with a `listen` that begins with rediss://'),
    source: clientTls.describe('For a source that begins with rediss:// or rediss+sentinel://'),
    target: clientTls.describe('For a target that begins with rediss:// or rediss+sentinel://'),
  })
  .partial()
  .describe('Certificates; those of servers are always verified');

const proxyProtocol = z
  .strictObject({
    mode: z
      .enum(PROXY_PROTOCOL_MODES)
      .describe(
        'off: no header. optional: with or without a header. required: a connection without a header is closed. Write "off" in quotes',
      ),
    from: z
      .array(z.string().min(1))
      .default([])
      .describe(
        'Networks (CIDR) or addresses of the load balancers that may send a header, such as 10.0.0.0/8; a header from another address closes the connection',
      ),
  })
  .describe(
    "Whether load balancers send the clients' addresses: HAProxy's PROXY protocol, version 1 or 2, before TLS. Default: off",
  );

const shard = z.strictObject({
  name: name.describe('Name of the shard in --shard, metrics and status, and of its folder below `state`'),
  listen: z
    .string()
    .min(1)
    .describe('Where clients connect to: redis://host:port, or rediss://host:port with tls.listen'),
  proxyProtocol: proxyProtocol.optional(),
  source: endpoint.describe('The Redis server to leave'),
  target: endpoint.describe('The KeyDB server to move to'),
  owns: owns.describe('If several shards share a target: the keys of this shard, as patterns or hash slots').optional(),
  region: name.describe("In an active-active topology: the region of the shard's target").optional(),
  tls: shardTls.optional(),
  admin: admin.describe("The shard's own admin address, where each shard has a process of its own").optional(),
});

const clusterUrl = z
  .string()
  .min(1)
  .meta({ title: 'URL' })
  .describe('redis://[user[:password]@]h1:p1,h2:p2 or rediss://…: any nodes; ${NAME} is an environment variable');
const clusterSide = z.union([
  clusterUrl,
  z.strictObject({ url: clusterUrl, passwordFile: path.describe("File with the servers' password").optional() }),
]);

const clusterReplicas = z.strictObject({
  port: z
    .number()
    .int()
    .min(0)
    .max(65_535)
    .describe("Port of the first shard's replica, at the host of `listen`; each further shard has the next port"),
  announce: z
    .string()
    .min(1)
    .describe(
      "host:port at which clients reach the first shard's replica, in the form of the cluster's `announce`. Default: the host of that `announce`, and `port`",
    )
    .optional(),
});

const cluster = z.strictObject({
  source: clusterSide.describe('Nodes of the Redis Cluster to leave; the proxy asks them for the other nodes'),
  target: clusterSide.describe('Nodes of the KeyDB cluster to move to, or one standalone KeyDB'),
  listen: z
    .string()
    .min(1)
    .describe('Where clients connect to: the address of the first shard; each further shard has the next port'),
  announce: z
    .string()
    .min(1)
    .describe(
      'host:port at which clients reach the first shard; each further shard has the next port. With {shard}, which stands for the name of the shard, all have the same port. Default: listen',
    )
    .optional(),
  proxyProtocol: proxyProtocol.optional(),
  cuts: z
    .array(
      z
        .number()
        .int()
        .min(1)
        .max(SLOTS - 1),
    )
    .default([])
    .describe('Slots at which a further shard begins, so that several proxies share one master'),
  replicas: clusterReplicas
    .describe(
      'Whether clients may read from replicas while a workload is in off: each proxy is then announced as a replica, too',
    )
    .optional(),
  tls: shardTls.optional(),
  admin: admin
    .describe(
      "The first shard's own admin address, where each shard has a process of its own; each further shard has the next port",
    )
    .optional(),
});

const announced = (of: string): z.ZodOptional<z.ZodString> =>
  z
    .string()
    .min(1)
    .describe(
      `host:port at which ${of}; \${NAME} is an environment variable, such as the address of this machine. Default: listen`,
    )
    .optional();

const sentinel = z.strictObject({
  listen: z
    .string()
    .min(1)
    .describe(
      'Where clients ask for masters: redis://host:port, or rediss://host:port with tls.listen. Sentinels have port 26379',
    ),
  announce: announced('clients and other proxies reach this address'),
  username: z.string().min(1).default('default').describe('User that clients log in as; only with a password'),
  passwordFile: path
    .describe('File with the password that clients log in with. Default: no login is required')
    .optional(),
  tls: z
    .strictObject({ listen: listenTls.describe('For clients; use it with a `listen` that begins with rediss://') })
    .describe("Certificates of the Sentinel's address")
    .optional(),
  masters: z
    .array(
      z.strictObject({
        name: z
          .string()
          .regex(/^[A-Za-z0-9._-]+$/, 'letters, digits, dot, dash and underscore')
          .describe('Name by which clients ask for the master'),
        shard: name.describe('The shard whose proxy is that master'),
        announce: announced("the shard's clients reach this process"),
      }),
    )
    .min(1)
    .describe('Masters by their names, one for each shard. Default: those of sources that are given by Sentinels')
    .optional(),
});

/** Limits which node may write a workload, for topologies in which several nodes accept writes. */
const writing = {
  writer: name
    .describe(
      'In an active-active topology: the only region that may write this workload; proxies of other regions refuse or count its writes',
    )
    .optional(),
  counterLayout: z
    .enum(COUNTER_LAYOUTS)
    .default('plain')
    .describe(
      'For class counter. With plain, each counter is one key. With library, the applications use the counters package. With per-region, the proxy rewrites each plain counter to one key for each region; the stage of such a workload is "off" or complete',
    ),
};

const failover = z
  .enum(['manual', 'automatic'])
  .describe(
    'When an authority is down. manual: clients get an error until the operator decides; automatic: clients move to the mirror if it has confirmed every acknowledged write',
  );

const FIRST_STAGE = 'Stage at the first start; after that the saved state decides, not the plan. Write "off" in quotes';

const shadowReads = z
  .union([
    z.number().positive().max(100),
    z.string().regex(/^(?:100|[1-9]\d?)(?:\.\d+)? ?%$/, 'a share of reads such as 10 or "10 %"'),
  ])
  .transform((value) => (typeof value === 'number' ? value : Number.parseFloat(value)))
  .pipe(z.number().positive().max(100))
  .meta({ title: 'share' })
  .describe(
    'Share of the reads that are sent to the target and compared while the source answers, in percent, for a target that cannot bear all reads. Writes are always sent, and so are reads inside MULTI. Default: 100',
  );

const workloadClass = z
  .enum(WORKLOAD_CLASSES)
  .default('general')
  .describe(
    'What the keys are used for. An active-active topology needs a writer for counter and leaderboard, or a counterLayout for counter. The other classes are for information only',
  );

const workload = z.strictObject({
  name: name.describe('Name of the workload in commands, metrics, status and history; "default" is not allowed'),
  keys: patterns.describe(
    'Glob patterns of the keys, as for KEYS. A key belongs to the first workload that matches it. A pattern is refused if all its keys belong to earlier workloads',
  ),
  channels: patterns.describe("Glob patterns of the workload's pub/sub channels").optional(),
  class: workloadClass,
  ...writing,
  stage: z.enum(STAGES).default('off').describe(FIRST_STAGE),
  percent: percent.optional(),
  shadowReads: shadowReads.optional(),
  failover: failover.describe("The workload's own value. Default: the plan's").optional(),
  gates: workloadGates.optional(),
});

const limits = z.strictObject({
  queueBytes: bytes
    .prefault('64MiB')
    .describe(
      'Maximum size of the effects that wait for the mirror of one shard; beyond it their keys become suspects',
    ),
  clients: z.number().int().positive().default(10_000).describe('Maximum number of clients of one shard'),
  clientOutputBytes: bytes
    .prefault('256MiB')
    .describe('Maximum size of the replies that wait for one slow client; beyond it the client is closed'),
  totalClientBytes: bytes
    .prefault('256MiB')
    .describe(
      'Memory of all clients of one shard together: unread replies, unfinished commands, transactions; beyond it the largest client is closed first',
    ),
  transactionBytes: bytes
    .prefault('64MiB')
    .describe('Maximum size of the commands that one client queues between MULTI and EXEC; beyond it EXEC is refused'),
  loginMs: milliseconds
    .default(10_000)
    .describe(
      'How long a client may take for its TLS handshake and, where the authority requires a password, for its login; a slower client is closed',
    ),
  idleMs: z
    .number()
    .int()
    .nonnegative()
    .default(0)
    .meta({ title: 'milliseconds' })
    .describe(
      'A client that sends nothing for this time is closed, unless it is subscribed to a channel or blocked; 0: never',
    ),
  connectMs: milliseconds.default(5_000).describe('Timeout of one connection attempt to a server'),
  downAfterMs: milliseconds
    .default(3_000)
    .describe('An authority that does not answer for this time is considered down'),
  silentMs: milliseconds
    .min(250)
    .default(1_000)
    .describe(
      'A connection that waits longer than this for a reply is closed if the server answers on another connection; the keys of its commands become suspects',
    ),
  flipMs: milliseconds.default(5_000).describe("How long a stage change may hold a workload's commands"),
  drainMs: milliseconds.default(10_000).describe('How long a shutdown waits for commands in flight'),
  largeKeyBytes: bytes.prefault('1MiB').describe('A key of this size or more is copied in chunks'),
  largeKeyElements: z
    .number()
    .int()
    .positive()
    .default(10_000)
    .describe('A key with this number of elements or more is copied in chunks, too'),
});

const jobs = z.strictObject({
  maxMirrorP99Ms: z
    .number()
    .positive()
    .describe("A job slows down while the mirror's p99 is above this, in ms. Default: no limit")
    .optional(),
  maxReplicaLagBytes: bytes
    .describe('A job waits while a replica of the mirror is behind by more than this. Default: no limit')
    .optional(),
});

const opentelemetry = z.strictObject({
  url: z
    .string()
    .min(1)
    .describe(
      'Base URL of an OTLP receiver over HTTP, such as http://127.0.0.1:4318; ${NAME} is an environment variable',
    ),
  headersFile: path
    .describe(
      'File with HTTP headers for the receiver, one `name: value` on each line, such as the API key of a vendor',
    )
    .optional(),
  traceShare: z
    .number()
    .min(0)
    .max(1)
    .default(0)
    .describe(
      'Share of the commands that are traced, 0 to 1: 0.01 is 1 %. Traces have no keys unless ledger.redact is false',
    ),
  metricsMs: z
    .number()
    .int()
    .nonnegative()
    .default(60_000)
    .meta({ title: 'milliseconds' })
    .describe('Time between two exports of the metrics that /metrics serves; 0: none'),
});

const receiver = z.strictObject({
  kind: z.enum(RECEIVER_KINDS).describe('Protocol of the receiver'),
  name: name.describe('Name of the receiver in the log and in metrics. Default: its kind').optional(),
  url: z
    .string()
    .min(1)
    .describe(
      'http or https URL; ${NAME} is an environment variable. For alertmanager its base URL. Default for pagerduty: https://events.pagerduty.com',
    )
    .optional(),
  urlFile: path.describe('File with the URL, for a URL that is a secret, such as that of Slack').optional(),
  secretFile: path
    .describe(
      'File with the secret. webhook: signs each notification (required). pagerduty: the integration key (required). alertmanager: a bearer token',
    )
    .optional(),
  events: z
    .array(z.enum(NOTIFY_EVENTS))
    .min(1)
    .default([...NOTIFY_EVENTS])
    .describe('Events that are sent to the receiver'),
});

const ofWorkloads = z
  .array(name)
  .min(1)
  .describe('Only for stage changes of these workloads; default: of all')
  .optional();
const command = z.array(z.string().min(1)).min(1).meta({ title: 'command' });

const check = z.strictObject({
  name: name.describe('Name of the check in the gate `checks`'),
  prometheus: z
    .string()
    .min(1)
    .describe('Base URL of the Prometheus server that evaluates `query`; ${NAME} is an environment variable')
    .optional(),
  query: z
    .string()
    .min(1)
    .describe('PromQL expression. If it has several results, each must be within `max` and `min`')
    .optional(),
  max: z.number().describe('Maximum value of the query').optional(),
  min: z.number().describe('Minimum value of the query').optional(),
  http: z
    .string()
    .min(1)
    .describe('URL to get: a status from 200 to 299 opens the gate, another one closes it')
    .optional(),
  tokenFile: path.describe('File with a bearer token for `prometheus` or `http`').optional(),
  command: command
    .describe('Program with its arguments: exit code 0 opens the gate, 1 closes it, any other is unknown')
    .optional(),
  workloads: ofWorkloads,
  deadlineMs: milliseconds
    .default(5_000)
    .describe('Maximum time for an answer; without an answer in time, the gate is unknown'),
});

const hook = z.strictObject({
  name: name.describe('Name of the hook in the log and in answers'),
  when: z
    .enum(['before', 'after'])
    .describe(
      'before: a promotion waits for it, and is refused if it fails; a rollback or a failover does not wait. after: its failure changes nothing',
    ),
  command: command.describe(
    'Program with its arguments. It gets the stage change as JSON on its standard input, and as environment variables SHADOW_PROXY_*',
  ),
  workloads: ofWorkloads,
  deadlineMs: milliseconds
    .default(10_000)
    .describe('Maximum run time of the program; after that the program is ended and counts as failed'),
});

const guard = z.strictObject({
  action: z
    .enum(['rollback', 'stop'])
    .default('rollback')
    .describe('rollback: the workload goes back to shadow. stop: it stays where it is, and its rollout ends'),
  forSeconds: z.number().int().positive().default(60).describe('How long a limit must be exceeded without a break'),
  maxErrorShare: z
    .number()
    .min(0)
    .max(1)
    .default(0.05)
    .describe("Maximum share of the target's replies to clients that are errors"),
  maxP99Ratio: z
    .number()
    .positive()
    .default(3)
    .describe(
      "Maximum p99 latency of the target divided by that of the source, for the workload's commands; values below 1 ms count as 1 ms",
    ),
  maxP99Ms: z.number().positive().describe("Maximum p99 latency of the target for the workload's commands").optional(),
  maxMismatches: z
    .number()
    .int()
    .nonnegative()
    .default(0)
    .describe('Mismatches that are allowed since the workload entered its stage'),
  checks: z
    .array(name)
    .default([])
    .describe(
      'Names of `checks`: a check that closes its gate counts as an exceeded limit, a check without an answer does not',
    ),
  workloads: z.array(name).min(1).describe('Only for these workloads; default: for all').optional(),
});

const rollout = z.strictObject({
  holdMinutes: z
    .number()
    .nonnegative()
    .default(10)
    .describe('How long all gates of the next step must have been open without a break'),
  window: z
    .string()
    .regex(/^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$/, 'two times of the day such as 22:00-05:00')
    .describe('Steps are taken only between these times of the day (UTC), such as 22:00-05:00; default: at any time')
    .optional(),
  workloads: z.array(name).min(1).describe('Only for these workloads; default: for all').optional(),
});

export const planSchema = z.strictObject({
  version: z.literal(1).describe('Version of the format of this file'),
  name: name.describe('Name of the migration'),
  shards: z
    .array(shard)
    .min(1)
    .describe('Shards: each has a source, a target, and an address for clients; left out with `cluster`')
    .optional(),
  cluster: cluster
    .describe('Instead of `shards`: a Redis Cluster, whose shards are derived from the slots of both sides')
    .optional(),
  workloads: z.array(workload).default([]).describe('Workloads, in the order in which keys are matched'),
  default: z
    .strictObject({
      class: workloadClass,
      ...writing,
      stage: z.enum(STAGES).default('off').describe(FIRST_STAGE),
      percent: percent.optional(),
      shadowReads: shadowReads.optional(),
      failover: failover.describe("The workload's own value. Default: the plan's").optional(),
      gates: workloadGates.optional(),
    })
    .prefault({})
    .describe('Keys that match no workload'),
  gates: gates.prefault({}).describe('Evidence that a workload must have before its next stage'),
  checks: z
    .array(check)
    .default([])
    .describe('Further conditions of a promotion: Prometheus queries, HTTP requests, programs'),
  hooks: z.array(hook).default([]).describe('Programs that run before or after each stage change'),
  guard: guard
    .describe(
      'Moves a workload in live or rampdown back automatically if a limit is exceeded. After that the workload waits for an operator. Left out: off',
    )
    .optional(),
  rollout: rollout
    .describe(
      'Moves a workload that is in live automatically from 1 to 10, 50 and 100 % of its keys while its gates are open. An operator takes all other steps. Left out: off',
    )
    .optional(),
  onAuthorityChange: z
    .enum(['ask', 'accept'])
    .default('ask')
    .describe(
      'When an authority was restarted or replaced (run ID changed). With ask, repairs are frozen until the operator decides. With accept, its data is accepted, and keys that it lost are deleted on the mirror',
    ),
  hashFieldTtl: z
    .enum(['refuse', 'strip'])
    .default('refuse')
    .describe(
      'Hashes whose fields have a TTL (Redis 7.4, Valkey 9), which KeyDB cannot hold. With refuse, such a key stays a suspect and blocks the change to live. With strip, it is copied without these TTLs: each expiry of a field at the source is one more copy of the key. Once the target answers, its fields do not expire any more',
    ),
  failover: failover.default('manual'),
  topology: z
    .strictObject({
      mode: z
        .enum(['primary-replica', 'active-active'])
        .default('primary-replica')
        .describe(
          'primary-replica: one node of the target accepts writes. active-active: one node in each region does',
        ),
      regions: z
        .array(name)
        .default([])
        .describe('Regions of an active-active topology, each with one node that accepts writes'),
      secondWriter: z
        .enum(['refuse', 'count'])
        .default('refuse')
        .describe('What a proxy does with a write on a workload whose writer is another region'),
      outageMinutes: z
        .number()
        .positive()
        .default(60)
        .describe(
          'How long the link between two nodes may be down without a full resync afterwards; the guard checks the replication backlog against it',
        ),
    })
    .prefault({})
    .describe('Which nodes of the targets accept writes'),
  admin: admin.prefault({}).describe('Status page, API and metrics of the process'),
  sentinel: sentinel
    .describe(
      'For clients that are configured with Sentinels: the proxy answers as one, with the address of the proxy that serves. Left out: off',
    )
    .optional(),
  threads: z
    .union([z.literal('auto'), z.int().min(0).max(16)])
    .default('auto')
    .describe(
      "Front threads of each shard, which read and write the clients' sockets; 0: none. With auto, half of the cores, at most 4, and none on 2 cores. With TLS or without native sockets, more than one needs Linux and Node 22.12",
    ),
  sockets: z
    .enum(['auto', 'node'])
    .default('auto')
    .describe(
      "What reads and writes the clients' sockets. auto: the native module if it can be loaded and clients do not use TLS, otherwise Node.js. node: always Node.js",
    ),
  laneNames: z
    .enum(LANE_NAMES)
    .default('plain')
    .describe(
      "Names (CLIENT SETNAME) of the connections to the servers that carry clients' commands. With clients, they also name up to 5 of the clients, so that the server's own CLIENT LIST shows them",
    ),
  state: path.default('./state').describe('Directory of the durable state, relative to the plan'),
  limits: limits.prefault({}).describe('Limits and timeouts'),
  jobs: jobs
    .prefault({})
    .describe('Limits of each backfill and verify that has none of its own (`shadow-compare job`)'),
  knownClients: z
    .array(z.string().min(1))
    .default([])
    .describe(
      'Names (CLIENT SETNAME) or addresses of clients that may connect to a source directly, such as exporters',
    ),
  knownUsers: z
    .array(z.string().min(1))
    .default([])
    .describe(
      'ACL users that no client of the proxy uses, such as those of exporters and replicas: the gate users does not compare them',
    ),
  fence: z
    .enum(['off', 'acl'])
    .default('off')
    .describe(
      'With acl, users of a source lose their writes (ACL SETUSER) while its target answers clients. The source needs Redis 6 or KeyDB, and the kit a user of its own there. Leave it off where the kit may not change users, as on managed services',
    ),
  ledger: z
    .strictObject({
      maxBytes: bytes.prefault('16MiB').describe('Size of one file'),
      files: z
        .number()
        .int()
        .min(1)
        .max(100)
        .default(4)
        .describe('Number of files that are kept, including the current one'),
      redact: z.boolean().default(true).describe('Whether keys and replies are redacted; false writes them in full'),
      keepDays: z
        .number()
        .int()
        .min(1)
        .max(3650)
        .default(30)
        .describe('Days after which a mismatch is removed from the files'),
    })
    .prefault({})
    .describe('The record of mismatches, in <state>/<shard>/ledger.jsonl'),
  opentelemetry: opentelemetry
    .describe('OTLP receiver of traces and metrics; /metrics is served all the same')
    .optional(),
  notify: z
    .array(receiver)
    .default([])
    .describe('Receivers of notifications: Slack, PagerDuty, Alertmanager, webhooks'),
});

/** A plan file of the right shape, with defaults, before addresses, secrets and certificates are read. */
export type PlanFile = z.infer<typeof planSchema>;
export type EndpointFile = z.infer<typeof endpoint>;
export type ShardFile = z.infer<typeof shard>;
export type ClusterFile = z.infer<typeof cluster>;
export type AdminFile = z.infer<typeof admin>;
export type OpenTelemetryFile = z.infer<typeof opentelemetry>;
export type SentinelFile = z.infer<typeof sentinel>;
export type ReceiverFile = z.infer<typeof receiver>;
export type GuardFile = z.infer<typeof guard>;
export type RolloutFile = z.infer<typeof rollout>;
export type CheckFile = z.infer<typeof check>;

/** JSON Schema (draft 2020-12) of a plan file. */
export function planJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(planSchema, { io: 'input' });
  return {
    ...schema,
    title: 'Migration plan',
    description: 'One plan for the proxy, Terraform, Ansible, dashboards and runbooks',
  };
}
