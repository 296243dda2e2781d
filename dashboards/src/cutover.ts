/** One workload on its way from the source to the target, with what happened to it on every plot. */
import { AUTHORITY_WORDS, GUARD_WORDS, SAFE_WORDS } from './overview.js';
import { dashboard, ONE_WORKLOAD, SHARD, type Event } from './frame.js';
import {
  badFrom,
  goodFrom,
  lines,
  PLAIN,
  SIDES,
  STAGE_WORDS,
  states,
  tile,
  VERDICTS,
  words,
  worthALook,
} from './panel.js';
import {
  gateNumber,
  gatesClosed,
  guardNumber,
  maxBy,
  ofWorkload,
  p99Ratio,
  perSecond,
  proxy,
  quantile,
  stageNumber,
  sumBy,
  wayBack,
} from './query.js';

const stage = ofWorkload('stage');

/** Short enough to lie near the moment, and long enough to hold two scrapes of 15 s. */
const AROUND = '45s';

const events: readonly Event[] = [
  {
    name: 'Stage',
    query: `changes(${stage}[${AROUND}]) > 0 and ${stage} == 1`,
    title: '{{shard}} {{workload}} → {{stage}}',
    color: 'purple',
  },
  {
    name: 'Percent',
    query: `${maxBy('shard, workload', `changes(${ofWorkload('percent')}[${AROUND}])`)} > 0`,
    title: '{{shard}} {{workload}}: percent changed',
    color: 'blue',
  },
  {
    name: 'Mismatch',
    query: `${sumBy('shard, workload', `increase(${ofWorkload('compared_total', 'verdict="mismatch"')}[${AROUND}])`)} > 0`,
    title: '{{shard}} {{workload}}: mismatch found',
    color: 'red',
  },
  {
    name: 'Failover',
    query: `${sumBy('shard', `increase(${proxy('failovers_total')}[${AROUND}])`)} > 0`,
    title: '{{shard}}: clients sent to the mirror',
    color: 'orange',
  },
];

export const cutover = dashboard({
  name: 'cutover',
  description:
    'One workload: its stage, the gates of the next one, and what its clients notice. Changes of stage, mismatches and failovers are marked on every plot.',
  choices: [SHARD, ONE_WORKLOAD],
  events,
  sections: [
    {
      title: 'Now',
      panels: [
        tile({
          title: 'Stage',
          description:
            'Where it stands: the next step is shadow-compare promote, the way back shadow-compare rollback.',
          width: 4,
          queries: { '{{shard}}': stageNumber },
          mappings: STAGE_WORDS,
          thresholds: PLAIN,
        }),
        tile({
          title: 'Answered by',
          description: 'Which server’s replies the clients get.',
          width: 4,
          queries: { '{{shard}}': maxBy('shard', ofWorkload('authority_target')) },
          mappings: AUTHORITY_WORDS,
          thresholds: PLAIN,
        }),
        tile({
          title: 'Share of keys',
          description: 'Share of the hash slots in this stage: raise it in steps, and wait for the gates at each.',
          width: 4,
          unit: 'percent',
          queries: { '{{shard}}': maxBy('shard', ofWorkload('percent')) },
        }),
        tile({
          title: 'Gates closed',
          description:
            'Gates that block the next stage. shadow-compare promote --dry-run shows what each requires. At 0, promote.',
          width: 4,
          queries: { '{{shard}}': sumBy('shard', gatesClosed) },
          thresholds: worthALook(1),
        }),
        tile({
          title: 'Rollback is safe',
          description:
            'No suspect keys, and the mirror is less than 5 s behind: a rollback loses nothing. At no, rollback lists what would be lost.',
          width: 4,
          queries: { '{{shard}}': maxBy('shard', wayBack) },
          mappings: SAFE_WORDS,
          thresholds: goodFrom(1),
        }),
        tile({
          title: 'In this stage for',
          description: 'The gates count from here, so wait at least minMinutes of the plan.',
          width: 4,
          unit: 's',
          decimals: 0,
          queries: { '{{shard}}': `time() - ${maxBy('shard', ofWorkload('stage_start_timestamp_seconds'))}` },
        }),
      ],
    },
    {
      title: 'Stage and gates',
      panels: [
        states({
          title: 'Stage',
          description: 'The way so far: back steps are rollbacks or failovers, and shadow-compare history says whose.',
          width: 12,
          height: 4,
          queries: { '{{shard}}': stageNumber },
          mappings: STAGE_WORDS,
        }),
        states({
          title: 'Counters',
          description:
            'What guard says of its counters on the target’s nodes: unsafe means that two nodes may write one key, so see Active-active and counters.',
          width: 12,
          height: 4,
          queries: { '{{shard}}': guardNumber },
          mappings: GUARD_WORDS,
        }),
        states({
          title: 'Gates of the next stage',
          description:
            'Green is open. No and unknown both block. shadow-compare promote --dry-run shows what is missing.',
          width: 24,
          height: 10,
          queries: { '{{shard}} {{gate}}': gateNumber },
          mappings: words({ 0: ['no', 'orange'], 1: ['unknown', 'yellow'], 2: ['yes', 'green'] }),
        }),
      ],
    },
    {
      title: 'Effect on clients',
      panels: [
        lines({
          title: 'Commands',
          description:
            'Reads and writes on its keys: a dip at a change of stage is the flip, and has to be over within flipMs.',
          width: 8,
          unit: 'ops',
          stacked: true,
          queries: { '{{type}}': sumBy('type', perSecond(ofWorkload('operations_total'))) },
        }),
        lines({
          title: 'p99 of both servers',
          description:
            'Of the whole shard in the last minute: if the target’s rises after the flip, go back first and look afterwards.',
          width: 8,
          unit: 's',
          colors: SIDES,
          queries: { '{{server}} {{shard}}': quantile('0.99') },
        }),
        lines({
          title: 'p99 of the target by the source’s',
          description:
            'In the last minute: above 1.2 the gate latency closes unless the plan says otherwise, so look at the target’s CPU first.',
          width: 8,
          decimals: 2,
          queries: { '{{shard}}': p99Ratio },
          thresholds: badFrom(2, 1.2),
        }),
      ],
    },
    {
      title: 'Data on both servers',
      panels: [
        lines({
          title: 'Pairs compared',
          description: 'By verdict: nothing compared opens no gate.',
          width: 8,
          unit: 'ops',
          stacked: true,
          colors: VERDICTS,
          queries: { '{{verdict}}': sumBy('verdict', perSecond(ofWorkload('compared_total'))) },
        }),
        lines({
          title: 'Mismatch share',
          description:
            'Mismatches of the pairs compared, over five minutes: anything above 0 is a finding, so read shadow-compare report.',
          width: 8,
          unit: 'percentunit',
          decimals: 3,
          queries: {
            '{{shard}}': `${sumBy('shard', `increase(${ofWorkload('compared_total', 'verdict="mismatch"')}[5m])`)} / clamp_min(${sumBy('shard', `increase(${ofWorkload('compared_total')}[5m])`)}, 1)`,
          },
          thresholds: badFrom(0.000001),
        }),
        lines({
          title: 'Allowed share',
          description:
            'Over five minutes. Above 25 % the gate allowed is closed by default, so that rules cannot hide faults.',
          width: 8,
          unit: 'percentunit',
          decimals: 2,
          queries: {
            '{{shard}}': `${sumBy('shard', `increase(${ofWorkload('compared_total', 'verdict="allowed"')}[5m])`)} / clamp_min(${sumBy('shard', `increase(${ofWorkload('compared_total')}[5m])`)}, 1)`,
          },
          thresholds: badFrom(0.25, 0.1),
        }),
        lines({
          title: 'Suspect keys',
          description: 'They block promotion, and the proxy repairs them: wait for 0.',
          width: 8,
          queries: { '{{shard}}': maxBy('shard', ofWorkload('suspects')) },
          thresholds: worthALook(1),
        }),
        lines({
          title: 'Mirror behind',
          description: 'A stage change waits until this is over. It times out at flipMs with nothing changed.',
          width: 8,
          unit: 's',
          queries: { '{{shard}}': maxBy('shard', proxy('mirror_lag_seconds')) },
          thresholds: badFrom(5, 1),
        }),
        states({
          title: 'Rollback is safe',
          description: 'Whether a rollback would lose nothing: do not promote further while it says no.',
          width: 8,
          queries: { '{{shard}}': maxBy('shard', wayBack) },
          mappings: SAFE_WORDS,
        }),
      ],
    },
  ],
});
