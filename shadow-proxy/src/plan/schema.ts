/**
 * The shape of a plan file: one definition for the validator and for the JSON Schema that editors complete from.
 * What no shape can say (two shards on one address, a percent without `live`) is in `check.ts`.
 */
import { z } from 'zod';
import { STAGES } from '../route/stage.js';
import { COUNTER_LAYOUTS } from './plan.js';
import { WORKLOAD_CLASSES } from './plan.js';

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
  .describe('Share of the hash slots that are live; only with stage live. Default: 100');

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
      .describe('Hash slots as Redis Cluster counts them; the hash tag of a key counts'),
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
    sentinelUsername: z.string().min(1).describe('User at the Sentinels, where they ask for one').optional(),
    sentinelPasswordFile: path.describe("File with the Sentinels' password").optional(),
  }),
]);

const clientTls = z.strictObject({
  ca: path
    .describe(
      'PEM file of the authority that signed the certificates of the server and its Sentinels. Default: the authorities that Node trusts',
    )
    .optional(),
  cert: path.describe("PEM file of the proxy's own certificate").optional(),
  key: path.describe("PEM file of the proxy's own key").optional(),
  servername: z
    .string()
    .min(1)
    .describe(
      'Name that the certificates of the server and its Sentinels must carry. Default: the host that is connected to',
    )
    .optional(),
});

const listenTls = z.strictObject({
  cert: path.describe('PEM file of the certificate that clients see'),
  key: path.describe('PEM file of its key'),
  ca: path.describe("PEM file of the authority of the clients' certificates").optional(),
  requireClientCert: z.boolean().default(false).describe('Refuse clients without a certificate signed by `ca`'),
});

const admin = z.strictObject({
  listen: z.string().default('127.0.0.1:9400').describe('host:port; beyond loopback a token is required'),
  token: z.string().min(1).describe('Bearer token, or ${NAME} for an environment variable').optional(),
  tokenFile: path.describe('File with the bearer token').optional(),
});

/** The defaults. */
export const GATES = {
  minCompared: 100_000,
  minMinutes: 60,
  maxMismatches: 0,
  maxP99Ratio: 1.2,
  maxAllowedShare: 0.25,
  maxVerifyHours: 24,
  unsupportedHours: 24,
  allowUnsupported: {},
  drill: true,
  steps: true,
};
const gate = {
  minCompared: z
    .number()
    .int()
    .nonnegative()
    .describe('Pairs of replies that must have been compared since it entered its stage'),
  minMinutes: z
    .number()
    .nonnegative()
    .describe('Minutes in which replies must have been compared since it entered its stage'),
  maxMismatches: z.number().int().nonnegative().describe('Mismatches that are allowed since it entered its stage'),
  maxP99Ratio: z
    .number()
    .positive()
    .describe("Target's p99 by the source's, the median over the minutes; below 1 ms both count as 1 ms"),
  maxAllowedShare: z
    .number()
    .min(0)
    .max(1)
    .describe('Share of the pairs of replies that rules may excuse, so that they cannot hide faults'),
  maxVerifyHours: z
    .number()
    .positive()
    .describe('Age, in hours, of the last verification of all keys, which must have found no difference'),
  unsupportedHours: z
    .number()
    .positive()
    .describe('Hours for which clients must not have used what a server does not support'),
  allowUnsupported: z
    .record(z.string().min(1), z.string().min(1))
    .describe(
      'What the gate `unsupported` may pass all the same, as it names it (`lolwut`, `command info`), each with the reason',
    ),
  drill: z.boolean().describe('Whether a rollback must have been rehearsed before live'),
  steps: z.boolean().describe('Whether live is taken by 1, 10, 50 and 100 % of the keys, one step after the other'),
};
const gates = z.strictObject({
  minCompared: gate.minCompared.default(GATES.minCompared),
  minMinutes: gate.minMinutes.default(GATES.minMinutes),
  maxMismatches: gate.maxMismatches.default(GATES.maxMismatches),
  maxP99Ratio: gate.maxP99Ratio.default(GATES.maxP99Ratio),
  maxAllowedShare: gate.maxAllowedShare.default(GATES.maxAllowedShare),
  maxVerifyHours: gate.maxVerifyHours.default(GATES.maxVerifyHours),
  unsupportedHours: gate.unsupportedHours.default(GATES.unsupportedHours),
  allowUnsupported: gate.allowUnsupported.default(GATES.allowUnsupported),
  drill: gate.drill.default(GATES.drill),
  steps: gate.steps.default(GATES.steps),
});
const workloadGates = z.strictObject(gate).partial().describe("The workload's own gates; what is absent is the plan's");

const shard = z.strictObject({
  name: name.describe('Names it in --shard, metrics and status, and its folder below `state`'),
  listen: z
    .string()
    .min(1)
    .describe('Where clients connect to: redis://host:port, or rediss://host:port with tls.listen'),
  source: endpoint.describe('The Redis being left'),
  target: endpoint.describe('The KeyDB being adopted'),
  owns: owns
    .describe(
      'The keys that this shard, and no other, has on a target that several shards share: patterns, or hash slots',
    )
    .optional(),
  region: name.describe('The region of its target, in an active-active topology').optional(),
  tls: z
    .strictObject({
      listen: listenTls.describe('For clients; goes with a `listen` that begins with rediss://'),
      source: clientTls.describe('For a source that begins with rediss:// or rediss+sentinel://'),
      target: clientTls.describe('For a target that begins with rediss:// or rediss+sentinel://'),
    })
    .partial()
    .describe('Certificates; those of servers are always verified')
    .optional(),
  admin: admin.describe("The shard's own admin address, for one process a shard").optional(),
});

/** How a workload is written where several nodes accept writes. */
const writing = {
  writer: name
    .describe(
      'The one region whose node may write it, in an active-active topology; proxies of other regions refuse or count its writes',
    )
    .optional(),
  counterLayout: z
    .enum(COUNTER_LAYOUTS)
    .default('plain')
    .describe(
      'Of class counter: plain is one key a counter; library: the applications use the counters package; per-region: the proxy rewrites plain counters to one part a region; such a workload is "off" or complete',
    ),
};

const failover = z
  .enum(['manual', 'automatic'])
  .describe(
    'When an authority dies: manual gives clients an error until the operator decides; automatic sends them to the mirror, where that has confirmed all that was acknowledged',
  );

const FIRST_STAGE = 'First stage; afterwards the durable state holds. Write "off" in quotes';

const workloadClass = z
  .enum(WORKLOAD_CLASSES)
  .default('general')
  .describe(
    'What its values are. counter and leaderboard are sums: an active-active topology needs a writer for them, or for a counter a counterLayout. The others tell people',
  );

const workload = z.strictObject({
  name: name.describe('Names it in commands, metrics, status and history; default is not allowed'),
  keys: patterns.describe(
    'Glob patterns of its keys, as KEYS takes them; the first workload that matches a key has it. A pattern whose keys earlier workloads have, all of them, is refused',
  ),
  channels: patterns.describe('Glob patterns of its pub/sub channels').optional(),
  class: workloadClass,
  ...writing,
  stage: z.enum(STAGES).default('off').describe(FIRST_STAGE),
  percent: percent.optional(),
  failover: failover.describe("Its own; where absent, the plan's").optional(),
  gates: workloadGates.optional(),
});

const limits = z.strictObject({
  queueBytes: bytes
    .prefault('64MiB')
    .describe("Effects that wait for one shard's mirror; past it their keys become suspects"),
  clients: z.number().int().positive().default(10_000).describe('Clients of one shard'),
  clientOutputBytes: bytes
    .prefault('256MiB')
    .describe('Replies that wait for one client which does not read; past it the client is closed'),
  totalClientBytes: bytes
    .prefault('256MiB')
    .describe(
      'Memory of all clients of one shard together: unread replies, unfinished commands, transactions; past it the largest client is closed first',
    ),
  transactionBytes: bytes
    .prefault('64MiB')
    .describe('Commands that one client may queue between MULTI and EXEC; past it EXEC is refused'),
  loginMs: milliseconds
    .default(10_000)
    .describe(
      'How long a client may take for its TLS handshake and, where the authority wants a password, for its login; then it is closed',
    ),
  idleMs: z
    .number()
    .int()
    .nonnegative()
    .default(0)
    .meta({ title: 'milliseconds' })
    .describe('A client that sends nothing for so long is closed, unless it waits for messages or blocks; 0 is never'),
  connectMs: milliseconds.default(5_000).describe('One attempt to connect to a server'),
  downAfterMs: milliseconds.default(3_000).describe('An authority that has not answered for so long is taken for dead'),
  silentMs: milliseconds
    .min(250)
    .default(1_000)
    .describe(
      'A connection that has waited so long for a reply is closed if the server answers on another one; its keys become suspects',
    ),
  flipMs: milliseconds.default(5_000).describe("How long a change of stage may hold a workload's commands"),
  drainMs: milliseconds.default(10_000).describe('How long a shutdown waits for commands in flight'),
  largeKeyBytes: bytes.prefault('1MiB').describe('From this size on a key is copied in parts'),
  largeKeyElements: z.number().int().positive().default(10_000).describe('From so many elements on, too'),
});

export const planSchema = z.strictObject({
  version: z.literal(1).describe('Of the shape of this file'),
  name: name.describe('Of the migration'),
  shards: z.array(shard).min(1).describe('Each a source, its target, and where the clients of the two connect to'),
  workloads: z.array(workload).default([]).describe('In the order in which they are matched'),
  default: z
    .strictObject({
      class: workloadClass,
      ...writing,
      stage: z.enum(STAGES).default('off').describe(FIRST_STAGE),
      percent: percent.optional(),
      failover: failover.describe("Its own; where absent, the plan's").optional(),
      gates: workloadGates.optional(),
    })
    .prefault({})
    .describe('Keys that no workload names'),
  gates: gates.prefault({}).describe('Evidence that a workload needs before its next stage'),
  onAuthorityChange: z
    .enum(['ask', 'accept'])
    .default('ask')
    .describe(
      'When an authority comes back as another process: ask freezes what copies until the operator decides; accept takes it as it is, and what it has lost is deleted on the mirror',
    ),
  failover: failover.default('manual'),
  topology: z
    .strictObject({
      mode: z
        .enum(['primary-replica', 'active-active'])
        .default('primary-replica')
        .describe('Whether one node of the target accepts writes, or one in each region'),
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
          'For how long the link between two nodes may be cut without a full resync when it heals; the backlog is judged by it',
        ),
    })
    .prefault({})
    .describe('Who accepts writes among the nodes of the targets'),
  admin: admin.prefault({}).describe('Status page, API and metrics of the process'),
  state: path.default('./state').describe('Directory of the durable state, relative to the plan'),
  limits: limits.prefault({}).describe('Bounds, and how long is waited'),
  knownClients: z
    .array(z.string().min(1))
    .default([])
    .describe(
      'Names (CLIENT SETNAME) or addresses of clients that may be connected to a source beside the proxy, such as exporters',
    ),
  knownUsers: z
    .array(z.string().min(1))
    .default([])
    .describe(
      'ACL users of the servers themselves, such as exporters and replicas, which no client of the proxy uses: the gate users does not compare them',
    ),
  ledger: z
    .strictObject({
      maxBytes: bytes.prefault('16MiB').describe('Size of one file'),
      files: z.number().int().min(1).max(100).default(4).describe('Files kept, the one being written included'),
      redact: z.boolean().default(true).describe('false writes keys and replies in full'),
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
});

/** A plan file whose shape is right, with defaults, before addresses, secrets and certificates are read. */
export type PlanFile = z.infer<typeof planSchema>;
export type EndpointFile = z.infer<typeof endpoint>;
export type ShardFile = z.infer<typeof shard>;
export type AdminFile = z.infer<typeof admin>;

/** JSON Schema (draft 2020-12) of a plan file. */
export function planJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(planSchema, { io: 'input' });
  return {
    ...schema,
    title: 'Migration plan',
    description: 'One plan for the proxy, Terraform, Ansible, dashboards and runbooks',
  };
}
