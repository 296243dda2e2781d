/** Where the whole migration stands, and what to look at now. */
import { dashboard, PROXY, SHARD, uidOf, WORKLOAD } from './frame.js';
import { badFrom, type Column, lines, rows, STAGE_WORDS, states, tile, VERDICTS, words, worthALook } from './panel.js';
import {
  gatesClosed,
  guardNumber,
  maxBy,
  ofWorkload,
  p99Ratio,
  perSecond,
  processOf,
  proxy,
  stageNumber,
  sumBy,
  wayBack,
} from './query.js';

export const AUTHORITY_WORDS = words({ 0: ['source', 'blue'], 1: ['target', 'purple'] });
export const SAFE_WORDS = words({ 0: ['no', 'orange'], 1: ['yes', 'green'] });
export const GUARD_WORDS = words({
  0: ['unsafe', 'red'],
  1: ['unknown', 'orange'],
  2: ['safe', 'green'],
  3: ['does not count', 'text'],
});

const mismatchesOf = (range: string): string =>
  `increase(${ofWorkload('compared_total', 'verdict="mismatch"')}[${range}])`;

const now = [
  tile({
    title: 'Proxies down',
    description:
      'Proxies that Prometheus cannot scrape: if one is down its clients have no server, so start it, or let its standby take over.',
    width: 3,
    queries: { down: `sum(1 - ${processOf('up')})` },
    thresholds: badFrom(1),
  }),
  tile({
    title: 'Servers down',
    description:
      'Sources and targets that workloads use, and that do not answer the proxy: see Source against target for which one, and shadow-compare status for what its clients get.',
    width: 3,
    queries: { down: `sum(1 - ${proxy('up')})` },
    thresholds: badFrom(1),
  }),
  tile({
    title: 'Mirror behind',
    description:
      'Age of the oldest write that the mirror has not confirmed: above 10 s a rollback would have to wait, so look at the mirror’s CPU and the link to it.',
    width: 3,
    unit: 's',
    queries: { behind: `max(${proxy('mirror_lag_seconds')})` },
    thresholds: badFrom(10, 1),
  }),
  tile({
    title: 'Suspect keys',
    description:
      'Suspects block promotion. The proxy repairs them, a whole workload by a backfill. If the number does not fall, the Shadow proxy dashboard shows the reason.',
    width: 3,
    queries: { keys: `sum(${ofWorkload('suspects')})`, 'whole workloads': `sum(${ofWorkload('all_suspect')})` },
    thresholds: worthALook(1),
  }),
  tile({
    title: 'Mismatches, last hour',
    description:
      'Replies that differed and no rule explains: read them with shadow-compare report before you move anything.',
    width: 3,
    decimals: 0,
    queries: { mismatches: `sum(${mismatchesOf('1h')})` },
    thresholds: badFrom(1),
  }),
  tile({
    title: 'Frozen or full',
    description:
      'Shards whose repairs are frozen until an operator decides, and servers that refuse writes because their memory is full. shadow-compare status says what to do.',
    width: 3,
    queries: { shards: `sum(${proxy('frozen')}) + sum(${proxy('server_full')})` },
    thresholds: badFrom(1),
  }),
  tile({
    title: 'Waiting jobs',
    description: 'Backfills and verifications that do not go on: shadow-compare status names the reason.',
    width: 3,
    queries: { jobs: `sum(${proxy('job_waiting')})` },
    thresholds: worthALook(1),
  }),
  tile({
    title: 'Writes bypassing the proxy',
    description:
      'Writes of the last hour that the source has run and the proxy did not send: find the client with CLIENT LIST, for the mirror does not have them.',
    width: 3,
    decimals: 0,
    queries: { writes: `sum(increase(${proxy('bypassing_writes_total')}[1h]))` },
    thresholds: badFrom(1),
  }),
];

const columns: readonly Column[] = [
  { name: 'stage', query: stageNumber, mappings: STAGE_WORDS },
  { name: 'percent', query: maxBy('shard, workload', ofWorkload('percent')), unit: 'percent' },
  { name: 'answered by', query: maxBy('shard, workload', ofWorkload('authority_target')), mappings: AUTHORITY_WORDS },
  { name: 'gates closed', query: gatesClosed, thresholds: worthALook(1) },
  { name: 'way back is safe', query: wayBack, mappings: SAFE_WORDS },
  { name: 'suspect keys', query: maxBy('shard, workload', ofWorkload('suspects')), thresholds: worthALook(1) },
  { name: 'compared', query: sumBy('shard, workload', ofWorkload('compared_total')) },
  {
    name: 'mismatches',
    query: sumBy('shard, workload', ofWorkload('compared_total', 'verdict="mismatch"')),
    thresholds: badFrom(1),
  },
  { name: 'ops/s', query: sumBy('shard, workload', perSecond(ofWorkload('operations_total'))), decimals: 1 },
  { name: 'counters', query: guardNumber, mappings: GUARD_WORDS },
];

export const overview = dashboard({
  name: 'overview',
  description: 'Where every workload stands, whether the two servers agree, and what to look at now.',
  choices: [SHARD, WORKLOAD, PROXY],
  sections: [
    { title: 'Needs attention now', panels: now },
    {
      title: 'Workloads',
      panels: [
        rows({
          title: 'Every workload',
          description:
            'One row a workload: move on the one whose gates are all open (shadow-compare promote), and read the gates of the others (shadow-compare status).',
          width: 24,
          height: 8,
          rows: ['shard', 'workload'],
          link: {
            label: 'workload',
            title: 'Cutover',
            url: `/d/${uidOf('cutover')}?var-shard=\${__data.fields.shard}&var-workload=\${__data.fields.workload}`,
          },
          columns,
        }),
        states({
          title: 'Stage',
          description:
            'The stage of each workload over time: a step back that nobody planned is a rollback or a failover, and shadow-compare history says whose.',
          width: 12,
          queries: { '{{shard}} {{workload}}': stageNumber },
          mappings: STAGE_WORDS,
        }),
        lines({
          title: 'Closed gates',
          description:
            'How many gates bar the next stage of each workload: a workload is ready at 0; after a promotion a line that rises says to think of going back.',
          width: 12,
          queries: { '{{shard}} {{workload}}': gatesClosed },
        }),
      ],
    },
    {
      title: 'Parity',
      panels: [
        lines({
          title: 'Replies compared',
          description:
            'Pairs of replies by verdict: if nothing is compared, no gate can open, so see that the workload is in shadow or live and has traffic.',
          width: 8,
          unit: 'ops',
          stacked: true,
          colors: VERDICTS,
          queries: { '{{verdict}}': sumBy('verdict', perSecond(ofWorkload('compared_total'))) },
        }),
        lines({
          title: 'Mismatches since the proxy started',
          description: 'Every step is a finding, not noise: read it with shadow-compare report.',
          width: 8,
          queries: {
            '{{shard}} {{workload}}': sumBy('shard, workload', ofWorkload('compared_total', 'verdict="mismatch"')),
          },
          thresholds: badFrom(1),
        }),
        lines({
          title: 'Suspect keys',
          description:
            'Suspects of each workload: a rise after a lost connection falls again by itself; one that stays is looked at in Shadow proxy.',
          width: 8,
          queries: { '{{shard}} {{workload}}': maxBy('shard, workload', ofWorkload('suspects')) },
          thresholds: worthALook(1),
        }),
      ],
    },
    {
      title: 'Load',
      panels: [
        lines({
          title: 'Commands of clients',
          description:
            'By workload: a workload that falls to nothing has lost its clients, or they have found another way to the source.',
          width: 8,
          unit: 'ops',
          stacked: true,
          queries: { '{{workload}}': sumBy('workload', perSecond(ofWorkload('operations_total'))) },
        }),
        lines({
          title: 'p99 of the target by the source’s',
          description:
            'In the last minute, where below 1 ms both count as 1 ms: above 1.2 the gate latency closes unless the plan says otherwise, so look at the target’s CPU first.',
          width: 8,
          decimals: 2,
          queries: { '{{shard}}': p99Ratio },
          thresholds: badFrom(2, 1.2),
        }),
        lines({
          title: 'Progress of backfill and verify',
          description:
            'Share of the keys that the keyspace scan has read, those of other workloads included. A flat line while a job runs means that the job waits.',
          width: 8,
          unit: 'percentunit',
          max: 1,
          queries: {
            '{{shard}}': `clamp_max(max by (shard) (${proxy('job_keys', 'what="scanned"')}) / clamp_min(${maxBy('shard', proxy('job_expected_keys'))}, 1), 1)`,
          },
        }),
      ],
    },
  ],
});
