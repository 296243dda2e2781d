/** Findings about the load: whether KeyDB would help, and whether one proxy is enough. */
import { count, number } from '../text/figures.js';
import type { Finding, Question } from './finding.js';

const BUSY = 0.7;
const IDLE = 0.3;
const MANY = 6;
const FEW = 3;
const NEAR_LIMIT = 0.8;
const FULL = 0.9;
/** A round trip of this many ms that is also this many times the median waited behind other commands. */
const [SPIKE_MS, SPIKE_TIMES] = [5, 5];
/** A load average above this, beside an idle server, shows that its host is busy with something else. */
const SOME_LOAD = 0.1;
/** Maximum share of a proxy's capacity that a shard should use. */
export const PROXY_SHARE = 0.6;
const LARGE_BYTES = 1 << 20;

const percent = (share: number): string => `${Math.round(share * 100)} %`;

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`;

export function cpu({ sources }: Question): Finding[] {
  const measured = sources.filter((source) => source.cpu !== null);
  const about = 'CPU';
  if (measured.length < sources.length) {
    return [
      {
        about,
        weight: 'unknown',
        what: `${sources.length - measured.length} of ${sources.length} servers do not report their CPU time`,
        means: 'watch the CPU of their command thread on their hosts',
      },
    ];
  }
  const busy = measured.filter((source) => source.cpu! >= BUSY);
  const shares = `${measured.map((source) => percent(source.cpu!)).join(', ')} of one core`;
  if (busy.length >= MANY)
    return [
      {
        about,
        weight: 'go',
        what: `${busy.length} of ${measured.length} instances use over ${percent(BUSY)} of their one thread (${shares})`,
        means: 'KeyDB helps where many instances are limited by their one thread',
      },
    ];
  if (busy.length > 0)
    return [
      {
        about,
        weight: 'go',
        what: `${busy.length} of ${measured.length} instances use over ${percent(BUSY)} of their one thread (${shares})`,
        means: 'the thread is the limit',
      },
    ];
  if (measured.length <= FEW && measured.every((source) => source.cpu! < IDLE)) {
    return [
      {
        about,
        weight: 'no-go',
        what: `${measured.length === 1 ? 'one instance' : `${measured.length} instances`}, idle (${shares})`,
        means: 'more threads do not help here: stay, or move for another reason',
      },
    ];
  }
  return [
    {
      about,
      weight: 'note',
      what: `no instance uses over ${percent(BUSY)} of its one thread (${shares})`,
      means: 'assess again at the busiest hour of the week',
    },
  ];
}

export function connections({ sources }: Question): Finding[] {
  return sources.flatMap(({ label, clients: { connected, max, rejected } }): Finding[] => {
    if (rejected > 0)
      return [
        {
          about: 'connections',
          weight: 'go',
          what: `${label} has refused ${number(rejected)} connections since it started`,
          means: 'maxclients is reached',
        },
      ];
    if (max !== null && connected >= max * NEAR_LIMIT)
      return [
        {
          about: 'connections',
          weight: 'go',
          what: `${label} has ${number(connected)} of ${number(max)} clients`,
          means: 'it is near maxclients, and each connection takes time of its one thread',
        },
      ];
    return [];
  });
}

export function queueing({ sources }: Question): Finding[] {
  return sources
    .filter(
      ({ ping: { p50, p99 }, cpu: share }) => (share ?? 1) >= SOME_LOAD && p99 >= SPIKE_MS && p99 >= p50 * SPIKE_TIMES,
    )
    .map(({ label, ping: { p50, p99, count: pings } }) => ({
      about: 'queueing',
      weight: 'go',
      what: `${label}: 1 of 100 PINGs took ${p99.toFixed(1)} ms, the median ${p50.toFixed(2)} ms (${pings} PINGs)`,
      means: 'commands wait for others; check SLOWLOG first: a slow command blocks KeyDB just as long',
    }));
}

export function memory({ sources }: Question): Finding[] {
  const bound = sources.filter(
    ({ memory: { used, max }, cpu: share }) => max !== null && used >= max * FULL && (share ?? 0) < BUSY,
  );
  return bound.map(({ label, memory: { used, max, policy }, evicted }) => ({
    about: 'memory',
    weight: 'no-go',
    what: `${label} is limited by memory: ${mebibytes(used)} of ${mebibytes(max!)} (${policy ?? 'policy unknown'}, ${number(evicted)} keys evicted), not by CPU`,
    means: 'KeyDB does not hold more keys in the same memory: give it more memory, or fewer keys',
  }));
}

/** In a cluster, the slots of one master can be divided among several proxies: about-cluster.ts. */
export function proxyCeiling({ sources, cluster, proxyOps }: Question): Finding[] {
  if (cluster !== null) return [];
  return sources
    .filter(({ opsPerSecond }) => opsPerSecond > proxyOps * PROXY_SHARE)
    .map(({ label, opsPerSecond }) => ({
      about: 'proxy',
      weight: 'no-go',
      what: `${label} gets ${number(opsPerSecond)} commands a second, over ${percent(PROXY_SHARE)} of the ${number(proxyOps)} that one proxy was measured to take`,
      means:
        'split the shard, or move some of its clients to another shard first; if your machines are faster, measure it (docs/capacity.md) and set --proxy-ops',
    }));
}

export function largeKeys({ sources }: Question): Finding[] {
  return sources.flatMap(({ label, keySample: { keys, largest } }): Finding[] => {
    const large = largest.filter(({ bytes }) => bytes >= LARGE_BYTES);
    return large.length === 0
      ? []
      : [
          {
            about: 'large keys',
            weight: 'note',
            what: `${label}: ${number(keys)} sampled keys include ${large.map(({ type, bytes, db }) => `a ${type} of ${mebibytes(bytes)} in database ${db}`).join(', ')}`,
            means: 'they are copied in chunks; a command that reads one whole blocks all clients, in KeyDB as in Redis',
          },
        ];
  });
}

/**
 * KeyDB answers these from a snapshot, during which it may treat a key that is set as a new one: upstream/scan-page.ts.
 */
export function keyspaceScans({ sources }: Question): Finding[] {
  const used = ['keys', 'scan'].map((name) => [name, callsOf(name, sources)] as const).filter(([, calls]) => calls > 0);
  const scans = sources.reduce((sum, { scansWatched }) => sum + scansWatched, 0);
  // Earlier assessments, plan init and backfills sent SCAN, too; only clients send KEYS.
  const byClients = callsOf('keys', sources) > 0 || scans > 0;
  const source = byClients
    ? ''
    : '; none while this ran: the kit itself sends SCAN (assess, plan init, backfill, verify)';
  return used.length === 0
    ? []
    : [
        {
          about: 'keyspace-scans',
          weight: byClients ? 'first' : 'note',
          what: `${used.map(([name, calls]) => `${name.toUpperCase()} was called ${count(calls, 'time')}`).join(', ')}${source}`,
          means:
            'before KeyDB is used without the proxy, limit SCAN to a COUNT under 100 and forbid KEYS: KeyDB loses TTLs, and can no longer save, when keys are set meanwhile (docs/keydb.md)',
        },
      ];
}

/** KeyDB 6.3.4 asserts in `unblockClientWaitingData`: session/handlers/exclusive.ts. */
export function databaseSwaps({ sources }: Question): Finding[] {
  const calls = callsOf('swapdb', sources);
  return calls === 0
    ? []
    : [
        {
          about: 'database-swaps',
          weight: 'first',
          what: `SWAPDB was called ${count(calls, 'time')}`,
          means:
            'before KeyDB is used without the proxy, stop using SWAPDB: KeyDB crashes if a client blocks (BLPOP, XREAD BLOCK) in one of the two databases (docs/keydb.md)',
        },
      ];
}

const callsOf = (name: string, sources: Question['sources']): number =>
  sources.reduce((sum, source) => sum + (source.calls.get(name) ?? 0), 0);

/** The target keeps what the source evicts, because the proxy does not know these keys. */
export const evictions = ({ sources }: Question): Finding[] =>
  sources
    .filter(({ evicted }) => evicted > 0)
    .map(({ label, evicted, memory: { max, policy } }) => ({
      about: 'evictions',
      weight: 'note',
      what: `${label} has evicted ${count(evicted, 'key')}${max === null || policy === null ? '' : ` (maxmemory ${mebibytes(max)}, ${policy})`}`,
      means:
        'the target keeps what the source evicts: verify reports these keys as differences, and verify --repair deletes them on the target. ' +
        'Evictions on the target keep gates closed: give it more memory, or raise maxmemory of the source first',
    }));

export function databases({ sources }: Question): Finding[] {
  return sources
    .filter((source) => [...source.databases.keys()].some((db) => db !== 0))
    .map(({ label, databases: all }) => ({
      about: 'databases',
      weight: 'note',
      what: `${label} uses databases ${[...all].map(([db, keys]) => `${db} (${count(keys, 'key')})`).join(', ')}`,
      means: 'all are copied; workload patterns apply to each database',
    }));
}
