/** The machines, by node_exporter. */
import { dashboard, HOST } from './frame.js';
import { badFrom, lines, tile, worthALook } from './panel.js';
import { host, perSecond, sumBy } from './query.js';

const busy = `1 - avg by (instance) (${perSecond(host('cpu_seconds_total', 'mode="idle"'))})`;
const cores = `count by (instance) (${host('cpu_seconds_total', 'mode="idle"')})`;
const memory = `1 - ${host('memory_MemAvailable_bytes')} / ${host('memory_MemTotal_bytes')}`;
const DISKS = 'fstype!~"tmpfs|ramfs|overlay|squashfs|iso9660|nsfs"';
const disk = `1 - min by (instance, mountpoint) (${host('filesystem_avail_bytes', DISKS)} / ${host('filesystem_size_bytes', DISKS)})`;
const LINKS = 'device!~"lo|veth.*|docker.*|br-.*"';

export const hosts = dashboard({
  name: 'hosts',
  description:
    'The machines of source, target and proxy by node_exporter: is there room, and does a neighbour take it?',
  choices: [HOST],
  sections: [
    {
      title: 'Now',
      panels: [
        tile({
          title: 'Hosts not scraped',
          description: 'Hosts whose exporter Prometheus cannot scrape: see whether the host is there at all.',
          width: 4,
          queries: { hosts: 'sum(1 - up{job="node",instance=~"$instance"})' },
          thresholds: badFrom(1),
        }),
        tile({
          title: 'Busiest CPU',
          description: 'Near 100 % every latency rises: take load away before you promote.',
          width: 4,
          unit: 'percentunit',
          decimals: 0,
          queries: { busy: `max(${busy})` },
          thresholds: badFrom(0.95, 0.8),
        }),
        tile({
          title: 'Fullest memory',
          description: 'A fork for a save needs room for what is written meanwhile: above 90 % it may be killed.',
          width: 4,
          unit: 'percentunit',
          decimals: 0,
          queries: { memory: `max(${memory})` },
          thresholds: badFrom(0.9, 0.8),
        }),
        tile({
          title: 'Fullest disk',
          description: 'Saves, the proxy’s state and its ledger need it: make room before 100 %.',
          width: 4,
          unit: 'percentunit',
          decimals: 0,
          queries: { disk: `max(${disk}) or 0 * sum(${host('uname_info')})` },
          thresholds: badFrom(0.9, 0.8),
        }),
        tile({
          title: 'Swap used',
          description:
            'A server that swaps answers in milliseconds what took microseconds: set vm.swappiness to 1 and give it memory.',
          width: 4,
          unit: 'bytes',
          queries: { swap: `sum(${host('memory_SwapTotal_bytes')} - ${host('memory_SwapFree_bytes')})` },
          thresholds: worthALook(1048576),
        }),
        tile({
          title: 'Stolen CPU',
          description: 'Time that the hypervisor gave to others, worst host: above 5 % ask for another instance type.',
          width: 4,
          unit: 'percentunit',
          decimals: 1,
          queries: { stolen: `max(avg by (instance) (${perSecond(host('cpu_seconds_total', 'mode="steal"'))}))` },
          thresholds: badFrom(0.05, 0.02),
        }),
      ],
    },
    {
      title: 'CPU',
      panels: [
        lines({
          title: 'CPU',
          description: 'Share of all cores: a busy host with an idle server has a neighbour, so find it with top.',
          width: 8,
          unit: 'percentunit',
          max: 1,
          queries: { '{{instance}}': busy },
          thresholds: badFrom(0.95, 0.8),
        }),
        lines({
          title: 'Busiest core',
          description: 'Redis and the proxy use one core each: at 100 % here they are full while the host looks idle.',
          width: 8,
          unit: 'percentunit',
          max: 1,
          queries: { '{{instance}}': `1 - min by (instance) (${perSecond(host('cpu_seconds_total', 'mode="idle"'))})` },
          thresholds: badFrom(0.95, 0.8),
        }),
        lines({
          title: 'Load by core',
          description: 'What runs or waits, by core: above 1 for long, threads wait for CPU.',
          width: 8,
          decimals: 2,
          queries: { '{{instance}}': `${host('load1')} / on (instance) ${cores}` },
          thresholds: badFrom(2, 1),
        }),
        lines({
          title: 'CPU by mode',
          description: 'Where to look: softirq is the network, iowait the disk, steal a neighbour.',
          width: 12,
          stacked: true,
          decimals: 2,
          queries: { '{{mode}}': sumBy('mode', perSecond(host('cpu_seconds_total', 'mode!="idle"'))) },
        }),
        lines({
          title: 'Context switches',
          description: 'A rise with no more load is threads that fight for a lock or cores: give KeyDB fewer threads.',
          width: 12,
          unit: 'ops',
          queries: { '{{instance}}': perSecond(host('context_switches_total')) },
        }),
      ],
    },
    {
      title: 'Memory and disk',
      panels: [
        lines({
          title: 'Memory',
          description: 'Share that is not available: keep a fifth free for forks.',
          width: 8,
          unit: 'percentunit',
          max: 1,
          queries: { '{{instance}}': memory },
          thresholds: badFrom(0.9, 0.8),
        }),
        lines({
          title: 'Pages to and from swap',
          description: 'Anything here for long is latency: find who needs the memory.',
          width: 8,
          unit: 'ops',
          queries: {
            'in {{instance}}': perSecond(host('vmstat_pswpin')),
            'out {{instance}}': perSecond(host('vmstat_pswpout')),
          },
        }),
        lines({
          title: 'Disk full',
          description: 'Of each file system: at 100 % saves and the proxy’s journal fail.',
          width: 8,
          unit: 'percentunit',
          max: 1,
          queries: {
            '{{instance}} {{mountpoint}}': `${disk} or on (instance) 0 * max by (instance) (${host('uname_info')})`,
          },
          thresholds: badFrom(0.9, 0.8),
        }),
        lines({
          title: 'Disk writes',
          description: 'Saves come in bursts: if they fall together with a rising p99, save on a replica.',
          width: 12,
          unit: 'Bps',
          queries: {
            '{{instance}}': `${sumBy('instance', perSecond(host('disk_written_bytes_total')))} or 0 * max by (instance) (${host('uname_info')})`,
          },
        }),
        lines({
          title: 'Major page faults',
          description: 'Pages that a command had to read from disk: the server was swapped out.',
          width: 12,
          unit: 'ops',
          queries: { '{{instance}}': perSecond(host('vmstat_pgmajfault')) },
        }),
      ],
    },
    {
      title: 'Network and time',
      panels: [
        lines({
          title: 'Received',
          description: 'Near the instance’s bandwidth replies wait: a backfill can be slowed with its limits.',
          width: 6,
          unit: 'Bps',
          queries: { '{{instance}}': sumBy('instance', perSecond(host('network_receive_bytes_total', LINKS))) },
        }),
        lines({
          title: 'Sent',
          description: 'As above, the other way.',
          width: 6,
          unit: 'Bps',
          queries: { '{{instance}}': sumBy('instance', perSecond(host('network_transmit_bytes_total', LINKS))) },
        }),
        lines({
          title: 'TCP segments sent again',
          description: 'Loss on the way: above a few a second the p99 belongs to the network.',
          width: 6,
          unit: 'ops',
          queries: { '{{instance}}': perSecond(host('netstat_Tcp_RetransSegs')) },
        }),
        lines({
          title: 'Clock offset',
          description: 'As the kernel estimates: TTLs, and which write wins a full resync, go by clocks.',
          width: 6,
          unit: 's',
          signed: true,
          queries: { '{{instance}}': host('timex_offset_seconds') },
          thresholds: worthALook(0.02),
        }),
      ],
    },
  ],
});
