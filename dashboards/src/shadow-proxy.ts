/** The proxy itself: lanes, what it compares, what is suspect, its jobs, its process. */
import { SAFE_WORDS } from './overview.js';
import { dashboard, PROXY, SHARD, WORKLOAD } from './frame.js';
import { badFrom, goodFrom, lines, rows, SIDES, states, tile, VERDICTS, words, worthALook } from './panel.js';
import { maxBy, ofWorkload, orNone, p99Ratio, perSecond, processOf, proxy, quantile, sumBy, wayBack } from './query.js';

const UP_WORDS = words({ 0: ['down', 'red'], 1: ['up', 'green'] });

export const shadowProxy = dashboard({
  name: 'shadow-proxy',
  description:
    'Lanes and their lag, comparisons and their verdicts, suspect keys, backfill and verify, and the process.',
  choices: [SHARD, WORKLOAD, PROXY],
  sections: [
    {
      title: 'Now',
      panels: [
        tile({
          title: 'Clients',
          description: 'Connected now: at 0 the applications have lost the proxy, or have not found it yet.',
          width: 4,
          queries: { clients: `sum(${proxy('clients')})` },
        }),
        tile({
          title: 'Commands',
          description: 'Of clients, in a second: compare with what the applications say they send.',
          width: 4,
          unit: 'ops',
          decimals: 0,
          queries: { commands: `sum(${perSecond(proxy('operations_total'))})` },
        }),
        tile({
          title: 'p99 of the target by the source’s',
          description:
            'The worst shard, last minute: above 1.2 the gate latency closes by default, so look at the target’s CPU first.',
          width: 4,
          decimals: 2,
          queries: { ratio: `max(${p99Ratio})` },
          thresholds: badFrom(2, 1.2),
        }),
        tile({
          title: 'Queue, share of the limit',
          description:
            'The fullest queue to a mirror: at 100 % further writes make their keys suspects, so find out why the mirror is slow.',
          width: 4,
          unit: 'percentunit',
          decimals: 1,
          queries: { queue: `max(${proxy('mirror_queued_bytes')} / ${proxy('mirror_queue_limit_bytes')})` },
          thresholds: badFrom(0.8, 0.3),
        }),
        tile({
          title: 'Leases held',
          description:
            'A shard is served under a lease on both servers: below 1, another process has taken the shard, or a server cannot be asked.',
          width: 4,
          unit: 'percentunit',
          queries: { held: `avg(${proxy('lease')})` },
          thresholds: goodFrom(1),
        }),
        tile({
          title: 'Standbys',
          description:
            'Processes that wait to take a shard over: with 0, a dead host means that its clients wait for you.',
          width: 4,
          queries: { standbys: `sum(${proxy('standby')})` },
        }),
      ],
    },
    {
      title: 'Clients and lanes',
      panels: [
        lines({
          title: 'Commands',
          description:
            'By shard: shards that should share the load and do not have a hot key or a client with an old list of addresses.',
          width: 8,
          unit: 'ops',
          queries: { '{{shard}}': sumBy('shard', perSecond(proxy('operations_total'))) },
        }),
        lines({
          title: 'p50',
          description:
            'Reply time of the last minute as the proxy sees it: half of the replies are faster, so look here for what the usual client feels.',
          width: 8,
          unit: 's',
          colors: SIDES,
          queries: { '{{server}} {{shard}}': quantile('0.5') },
        }),
        lines({
          title: 'p99',
          description:
            'Of the last minute, one reply in a hundred is slower: where the target is worse by more than a fifth, do not promote.',
          width: 8,
          unit: 's',
          colors: SIDES,
          queries: { '{{server}} {{shard}}': quantile('0.99') },
        }),
        states({
          title: 'Servers',
          description:
            'Whether each server answers that a workload uses: red on the authority’s side means that clients get errors.',
          width: 8,
          queries: {
            '{{server}} {{shard}}': maxBy('server, shard', proxy('up')),
            'mirror lane {{shard}}': maxBy('shard', proxy('mirror_connected')),
          },
          mappings: UP_WORDS,
        }),
        lines({
          title: 'Clients',
          description: 'Connections of applications. A sawtooth is a connection pool whose timeout is too short.',
          width: 8,
          queries: { '{{shard}}': maxBy('shard', proxy('clients')) },
        }),
        lines({
          title: 'Errors that clients get',
          description:
            'In a second, by the server that answers and by code: NOAUTH, WRONGPASS or NOPERM from the target after a promotion means that its users differ.',
          width: 8,
          unit: 'ops',
          queries: {
            '{{server}} {{kind}} {{shard}}': sumBy('shard, server, kind', perSecond(proxy('client_errors_total'))),
          },
        }),
        lines({
          title: 'Memory of clients',
          description:
            'Unread replies, unfinished commands, queued transactions: at limits.totalClientBytes the largest client is closed.',
          width: 8,
          unit: 'bytes',
          queries: { '{{shard}}': maxBy('shard', proxy('client_bytes')) },
        }),
        lines({
          title: 'Clients closed by limits',
          description:
            'In a second, by the limit of the plan: output and memory are clients that do not read or send too much, login and idle those that do nothing.',
          width: 8,
          unit: 'ops',
          queries: { '{{reason}} {{shard}}': sumBy('shard, reason', perSecond(proxy('clients_closed_total'))) },
        }),
        lines({
          title: 'Longest silence of a server',
          description: 'Time since a server that answers clients last replied. At downAfterMs it counts as down.',
          width: 8,
          unit: 's',
          colors: SIDES,
          queries: { '{{server}} {{shard}}': maxBy('server, shard', proxy('server_silent_seconds')) },
          thresholds: badFrom(3, 1),
        }),
      ],
    },
    {
      title: 'The mirror',
      panels: [
        lines({
          title: 'Behind',
          description:
            'Age of the oldest write that the mirror has not confirmed: a rollback waits as long; above 10 s look at the mirror’s CPU.',
          width: 8,
          unit: 's',
          queries: { '{{shard}}': maxBy('shard', proxy('mirror_lag_seconds')) },
          thresholds: badFrom(10, 1),
        }),
        lines({
          title: 'Queued bytes',
          description:
            'Effects on their way to the mirror: at limits.queueBytes of the plan further keys become suspects, and nothing is lost but time.',
          width: 8,
          unit: 'bytes',
          queries: { '{{shard}}': maxBy('shard', proxy('mirror_queued_bytes')) },
        }),
        lines({
          title: 'Dropped writes',
          description:
            'Since the start. Each made its key a suspect, which the proxy repairs. If it rises, the mirror cannot keep up.',
          width: 8,
          queries: { '{{shard}}': maxBy('shard', proxy('mirror_dropped_total')) },
          thresholds: worthALook(1),
        }),
      ],
    },
    {
      title: 'Verdicts',
      panels: [
        lines({
          title: 'Pairs compared',
          description: 'By verdict: only match and allowed open gates.',
          width: 8,
          unit: 'ops',
          stacked: true,
          colors: VERDICTS,
          queries: { '{{verdict}}': sumBy('verdict', perSecond(ofWorkload('compared_total'))) },
        }),
        lines({
          title: 'Mismatches',
          description: 'Since the start, by kind: read each with shadow-compare report, for a mismatch is a finding.',
          width: 8,
          queries: { '{{shard}} {{kind}}': orNone('kind', sumBy('shard, kind', proxy('mismatches_total'))) },
          thresholds: badFrom(1),
        }),
        lines({
          title: 'Differences allowed',
          description:
            'Since the start, by the rule that allows them: one that grows with all traffic is worth reading in docs/comparison-rules.md.',
          width: 8,
          queries: { '{{shard}} {{rule}}': orNone('rule', sumBy('shard, rule', proxy('allowed_total'))) },
        }),
        lines({
          title: 'Inconclusive',
          description:
            'Since the start, by reason. Inconclusive comparisons open no gate. After a lost connection some are expected.',
          width: 8,
          queries: { '{{shard}} {{reason}}': orNone('reason', sumBy('shard, reason', proxy('inconclusive_total'))) },
        }),
        lines({
          title: 'Unsupported commands',
          description:
            'Since the start, by name and option: clients get errors after the cutover, so change them first; the gate unsupported blocks promotion.',
          width: 8,
          queries: {
            '{{shard}} {{command}}': orNone(
              'command',
              `topk by (shard) (10, ${sumBy('shard, command', proxy('unsupported_total'))})`,
            ),
          },
          thresholds: worthALook(1),
        }),
        lines({
          title: 'Commands over several workloads',
          description:
            'In a second: what is refused is an error for its client, so put its keys into one workload or move both together.',
          width: 8,
          unit: 'ops',
          queries: {
            '{{shard}} {{outcome}}': sumBy('shard, outcome', perSecond(proxy('cross_workload_total'))),
            '{{shard}} another shard’s key': sumBy('shard', perSecond(proxy('other_shard_total'))),
          },
        }),
      ],
    },
    {
      title: 'Suspects and frozen repairs',
      panels: [
        lines({
          title: 'Suspect keys',
          description: 'By reason. The proxy repairs them. A reason that stays names what to fix.',
          width: 8,
          queries: { '{{shard}} {{reason}}': orNone('reason', sumBy('shard, reason', proxy('suspects'))) },
          thresholds: worthALook(1),
        }),
        lines({
          title: 'Differences being checked',
          description:
            'Differences without a verdict yet: more than a handful for long means that a server answers slowly.',
          width: 8,
          queries: { '{{shard}}': maxBy('shard', proxy('undecided')) },
        }),
        lines({
          title: 'Silent connections',
          description:
            'In the last hour, by server: closed because they brought nothing while the server answered; look at firewalls and connection tables.',
          width: 8,
          queries: {
            '{{shard}} {{server}}': sumBy('shard, server', `increase(${proxy('silent_connections_total')}[1h])`),
          },
          thresholds: worthALook(1),
        }),
        lines({
          title: 'Keys reserved',
          description:
            'Age of the oldest reservation, and the longest wait for keys: more than a second for long means commands that hang.',
          width: 8,
          unit: 's',
          queries: {
            '{{shard}} oldest': maxBy('shard', proxy('oldest_reservation_seconds')),
            '{{shard}} longest wait': maxBy('shard', proxy('longest_wait_for_keys_seconds')),
          },
          thresholds: badFrom(10),
        }),
        lines({
          title: 'Reservations',
          description: 'By age: those that are older than 10 s have outlived their operation.',
          width: 8,
          queries: { '{{shard}} {{age}}': orNone('age', sumBy('shard, age', proxy('reservations'))) },
        }),
        states({
          title: 'Rollback is safe',
          description:
            'No suspect keys, and the mirror is less than 5 s behind. At no, rollback lists what would be lost.',
          width: 8,
          queries: { '{{shard}} {{workload}}': wayBack },
          mappings: SAFE_WORDS,
        }),
        states({
          title: 'Frozen',
          description:
            'An authority restarted or was replaced (run ID changed). Repairs are frozen until you decide with shadow-compare accept.',
          width: 8,
          queries: { '{{shard}}': maxBy('shard', proxy('frozen')) },
          mappings: words({ 0: ['no', 'green'], 1: ['frozen', 'red'] }),
        }),
        states({
          title: 'Slots moved',
          description:
            'Of a Redis Cluster: slots of the shard are not with its masters, and their commands are refused. The status page says which.',
          width: 8,
          queries: { '{{shard}}': maxBy('shard', proxy('slots_moved')) },
          mappings: words({ 0: ['no', 'green'], 1: ['moved', 'red'] }),
        }),
        lines({
          title: 'Writes bypassing the proxy',
          description:
            'That the source has run and the proxy did not send, since the start: find the client, and verify with repair.',
          width: 8,
          queries: { '{{shard}}': maxBy('shard', proxy('bypassing_writes_total')) },
          thresholds: badFrom(1),
        }),
        lines({
          title: 'Target’s clock ahead',
          description:
            'The comparison of TTLs takes this into account. Above one second, repair the hosts’ time service.',
          width: 8,
          signed: true,
          unit: 's',
          queries: { '{{shard}}': maxBy('shard', proxy('clock_ahead_seconds')) },
          thresholds: worthALook(1),
        }),
      ],
    },
    {
      title: 'Backfill and verify',
      panels: [
        states({
          title: 'Running jobs',
          description: 'Which job runs: one that waits says why in shadow-compare status.',
          width: 8,
          queries: {
            '{{shard}} {{kind}}': maxBy('shard, kind', proxy('job_running')),
            '{{shard}} waits': maxBy('shard', `2 * ${proxy('job_waiting')}`),
          },
          mappings: words({ 0: ['no', 'text'], 1: ['runs', 'blue'], 2: ['waits', 'orange'] }),
        }),
        lines({
          title: 'Keys',
          description:
            'Of the job that runs, or was the last: seen climbs to expected; failed and unsure should stay at 0.',
          width: 8,
          queries: {
            '{{shard}} {{what}}': maxBy('shard, what', proxy('job_keys')),
            '{{shard}} expected': maxBy('shard', proxy('job_expected_keys')),
          },
        }),
        lines({
          title: 'Keys per second',
          description:
            'Speed of the keyspace scan. Below its limit, the servers’ CPU or the clients’ load slows it down.',
          width: 8,
          unit: 'ops',
          queries: {
            '{{shard}}': `clamp_min(sum by (shard) (deriv(${proxy('job_keys', 'what="seen"')}[$__rate_interval])), 0)`,
          },
        }),
        lines({
          title: 'Differences found',
          description:
            'Found by the running job, or the last one. Run shadow-compare verify --repair, and find the clients that bypass the proxy.',
          width: 8,
          queries: { '{{shard}} {{kind}}': orNone('kind', sumBy('shard, kind', proxy('job_differences'))) },
          thresholds: badFrom(1),
        }),
        lines({
          title: 'Failed keys',
          description: 'Keys that could not be copied or compared: shadow-compare status names the first, and why.',
          width: 8,
          queries: { '{{shard}} {{what}}': maxBy('shard, what', proxy('job_keys', 'what=~"failed|unsure"')) },
          thresholds: badFrom(1),
        }),
        lines({
          title: 'Bytes',
          description: 'Copied or compared so far by the job that runs, or the last.',
          width: 8,
          unit: 'bytes',
          queries: { '{{shard}}': maxBy('shard', proxy('job_bytes')) },
        }),
      ],
    },
    {
      title: 'Process',
      panels: [
        lines({
          title: 'CPU',
          description: 'The proxy is one thread: near 1 core it is full, so split its shards over processes.',
          width: 6,
          decimals: 2,
          queries: { '{{instance}}': perSecond(processOf('process_cpu_seconds_total')) },
          thresholds: badFrom(0.95, 0.8),
        }),
        lines({
          title: 'Event loop late',
          description: 'How late the loop turns, p99: whatever is here is in every client’s reply time.',
          width: 6,
          unit: 's',
          queries: { '{{instance}}': processOf('nodejs_eventloop_lag_p99_seconds') },
          thresholds: badFrom(0.25, 0.05),
        }),
        lines({
          title: 'Memory',
          description:
            'Of the process: it rises with queued effects and falls again; if it only rises, keep a heap profile and report it.',
          width: 6,
          unit: 'bytes',
          queries: { '{{instance}}': processOf('process_resident_memory_bytes') },
        }),
        lines({
          title: 'Open files',
          description: 'Of the limit; sockets, mostly: near 100 % new clients are refused, so raise LimitNOFILE.',
          width: 6,
          unit: 'percentunit',
          queries: { '{{instance}}': `${processOf('process_open_fds')} / ${processOf('process_max_fds')}` },
          thresholds: badFrom(0.9, 0.7),
        }),
        rows({
          title: 'Servers behind the endpoints',
          description:
            'A run id that changed is a server that restarted or failed over: the proxy has frozen, or made its keys suspects.',
          width: 24,
          height: 5,
          rows: ['shard', 'server', 'version', 'url', 'run_id'],
          columns: [
            {
              name: 'seen',
              query: `max by (shard, server, version, url, run_id) (${proxy('server_info', 'run_id!=""')})`,
              mappings: words({ 1: ['yes', 'green'] }),
            },
          ],
        }),
      ],
    },
  ],
});
