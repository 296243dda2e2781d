/** Findings about the servers themselves: versions, clocks, settings, replicas, users, clients. */
import { READABLE_RDB } from '../command/known.js';
import { compareUsers, describeWider } from '../command/users.js';
import { count, number } from '../text/figures.js';
import { tooOld } from '../upstream/identity.js';
import { compareSettings, describeDifference, type SettingDifference } from '../upstream/settings.js';
import type { InstanceFacts } from './instance-facts.js';
import type { Finding, Question } from './finding.js';

/** Clocks may differ by as much as the tolerance for TTLs. */
const CLOCK_MS = 50;

/** The default of `limits.clientOutputBytes`. */
const CLIENT_OUTPUT_BYTES = 256 << 20;

const quoted = (value: string): string => JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);

/** Settings of Redis 7 that KeyDB lacks, with the values that they have unless an operator changed them. */
const DEFAULTS: Readonly<Record<string, string>> = {
  'aof-timestamp-enabled': 'no',
  'propagation-error-behavior': 'ignore',
  appenddirname: 'appendonlydir',
  'repl-diskless-sync-max-replicas': '0',
  'aof-disable-auto-gc': 'no',
  'maxmemory-clients': '0',
  replicaof: '',
};

/** Settings with another name there, settings that a server sets itself, and those that clients do not notice. */
const ITS_OWN =
  /^((hash|list|set|zset)-max-listpack|replica-|io-threads|bind|port|dir|dbfilename|logfile|pidfile|unixsocket|syslog|supervised|proc-title|set-proc-title|oom-score|daemonize|cluster-|tls-|loglevel|databases|enable-|crash|use-exit|disable-thp|bgsave|aof_rewrite|jemalloc|server_cpulist|bio_cpulist|locale|shutdown-|socket-mark|bind-source|busy-reply|latency-tracking|sanitize|ignore-warnings|list-compress)/;

/** Servers that are newer than this release knows; if the source's payloads cannot be read, it cannot be copied. */
export function newerVersions({ sources, target }: Question): Finding[] {
  return [...sources, ...(target === null ? [] : [target])].flatMap(({ label, newer }): Finding[] => {
    if (newer === null) return [];
    const { rdbVersion } = newer;
    const isReadable = rdbVersion === null || READABLE_RDB.includes(rdbVersion);
    return [
      {
        about: 'version',
        weight: isReadable ? 'first' : 'no-go',
        what: `${label} is ${newer.evidence}`,
        means: isReadable
          ? 'take a newer release of the kit; or rehearse with such a server, then promote with --accept-version'
          : 'take a release of the kit that reads it',
      },
    ];
  });
}

export function versions({ sources, target, cluster }: Question): Finding[] {
  const found: Finding[] = [];
  for (const { label, version, role, isKeydb } of sources) {
    if (role === 'slave')
      found.push({
        about: 'role',
        weight: 'first',
        what: `${label} is a replica`,
        means:
          'it refuses writes: assess its master (its Sentinels, or the primary endpoint of ElastiCache), and name that in the plan',
      });
    if (isKeydb)
      found.push({
        about: 'source',
        weight: 'first',
        what: `${label} is KeyDB already`,
        means: 'check the address',
      });
    else if (version !== 'unknown' && tooOld('source', version) !== null)
      found.push({
        about: 'version',
        weight: 'no-go',
        what: `${label} is Redis ${version}`,
        means: 'the proxy refuses what is older than 6.2: upgrade the source first, with a replica of 6.2 or 7.0',
      });
  }
  if (cluster === null && target?.mode === 'cluster')
    found.push({
      about: 'target',
      weight: 'first',
      what: `${target.label} runs in cluster mode, and the sources do not`,
      means: 'use a KeyDB without cluster mode for each of them',
    });
  if (target !== null && !target.isKeydb)
    found.push({
      about: 'target',
      weight: 'note',
      what: `${target.label} is not KeyDB, but ${target.version}`,
      means: 'the kit works with it; findings about KeyDB do not apply',
    });
  return found;
}

export function clocks({ sources, target }: Question): Finding[] {
  const servers = [...sources, ...(target === null ? [] : [target])];
  return servers
    .filter(({ clock }) => Math.abs(clock.offsetMs) > CLOCK_MS + clock.errorMs)
    .map(({ label, clock }) => ({
      about: 'clocks',
      weight: 'first',
      what: `the clock of ${label} differs by ${clock.offsetMs} ms from this machine's`,
      means: 'keys with EXPIREAT expire at different times: run NTP or chrony on all hosts',
    }));
}

export function replicas({ sources }: Question): Finding[] {
  return sources.flatMap(({ label, replicas: all }) =>
    all.flatMap(({ address, reads }): Finding[] => {
      if (reads === null)
        return [
          {
            about: 'replicas',
            weight: 'first',
            what: `the replica ${address} of ${label} cannot be queried`,
            means: 'make sure that no client reads from it: such reads bypass the proxy',
          },
        ];
      return reads === 0
        ? []
        : [
            {
              about: 'replicas',
              weight: 'first',
              what: `the replica ${address} of ${label} has served ${count(reads, 'read')}`,
              means: 'they bypass the proxy: point these clients at the proxy, too',
            },
          ];
    }),
  );
}

export function settings({ sources, target }: Question): Finding[] {
  if (target === null || target.settings === null) return [];
  const theirs = target.settings;
  const lacking = new Map<string, string>();
  for (const source of sources)
    for (const [name, value] of source.settings ?? [])
      if (!theirs.has(name) && !ITS_OWN.test(name) && value !== DEFAULTS[name]) lacking.set(name, value);
  const compared = sources.map(({ settings: ours }) =>
    compareSettings(
      { source: { values: ours ?? new Map(), refusal: null }, target: { values: theirs, refusal: null } },
      CLIENT_OUTPUT_BYTES,
    ),
  );
  const described = (differences: readonly SettingDifference[]): string =>
    [...new Map(differences.map((each) => [each.name, describeDifference(each)])).values()].join(', ');
  const visible = described(compared.flatMap((each) => each.visible));
  const tuning = described(compared.flatMap((each) => each.tuning));
  const found: Finding[] = [];
  if (lacking.size > 0)
    found.push({
      about: 'settings',
      weight: 'note',
      what: `settings without a counterpart: ${[...lacking].map(([name, value]) => `${name} (${quoted(value)})`).join(', ')}`,
      means: 'check which of them your applications need',
    });
  if (visible !== '')
    found.push({
      about: 'settings',
      weight: 'first',
      what: `settings that clients can see differ: ${visible}`,
      means: 'set them on the target as on the source, or list in gates.acceptSettings of the plan which may differ',
    });
  if (tuning !== '')
    found.push({
      about: 'settings',
      weight: 'note',
      what: `settings that differ, without effect on replies: ${tuning}`,
      means: 'appendonly, appendfsync and save decide what a crash of the target loses',
    });
  return found;
}

export function clients({ sources, cluster }: Question): Finding[] {
  const silent = sources.filter(({ connections }) => connections === null);
  // A client of a cluster is connected to each of its masters.
  const of = cluster === null ? sources.map((source) => [source]) : [sources];
  return [
    ...silent.map(({ label }): Finding => ({
      about: 'clients',
      weight: 'unknown',
      what: `${label} does not list its clients`,
      means: 'find its clients another way: each must be pointed at the proxy',
    })),
    ...of.flatMap((servers) => clientsOf(servers)),
  ];
}

function clientsOf(servers: readonly InstanceFacts[]): Finding[] {
  const all = servers.flatMap(({ connections }) => connections ?? []);
  if (all.length === 0) return [];
  const groups = new Map<string, number>();
  for (const { host, name, library } of all) {
    const who = [host, name, library].filter(Boolean).join(' ');
    groups.set(who, (groups.get(who) ?? 0) + 1);
  }
  const named = [...groups].sort((a, b) => b[1] - a[1]);
  const shown = named.slice(0, 8).map(([who, times]) => `${who} (${times})`);
  const more = named.length > 8 ? ` and ${named.length - 8} more` : '';
  const connected =
    servers.length === 1
      ? `${count(all.length, 'client')} of ${servers[0].label}`
      : `${count(all.length, 'connection')} to ${count(servers.length, 'master')}`;
  return [
    {
      about: 'clients',
      weight: 'first',
      what: `${connected}: ${shown.join(', ')}${more}`,
      means: 'each must be pointed at the proxy: a client that bypasses it makes the servers differ',
    },
  ];
}

/** What the gate `users` will require before the target answers the first client. */
export function users({ sources, target }: Question): Finding[] {
  const most = Math.max(0, ...sources.map((source) => source.users ?? 0));
  if (target === null) {
    return most <= 1
      ? []
      : [
          {
            about: 'users',
            weight: 'first',
            what: `${number(most)} ACL users`,
            means:
              'create the same users on the target; new users of KeyDB get all channels unless acl-pubsub-default is resetchannels',
          },
        ];
  }
  const known = new Set([...sources, target].map(({ askedAs }) => askedAs).filter((name) => name !== 'default'));
  return sources.flatMap(({ label, acl }): Finding[] => {
    const { differences, unknown, unproven, wider } = compareUsers(acl, target.acl, known);
    if (unknown !== null)
      return [
        {
          about: 'users',
          weight: 'unknown',
          what: `${label}: ${unknown}`,
          means: 'whether clients may log in at the target is not known',
        },
      ];
    const hidden: Finding[] =
      unproven.length === 0
        ? []
        : [
            {
              about: 'users',
              weight: 'note',
              what: `${label} lists its users without passwords (${unproven.join(', ')}), as ElastiCache does`,
              means:
                'give each the same password on the target; the gate users tries the logins of clients there before a promotion',
            },
          ];
    const rights = wider.map((each): Finding => ({
      about: 'users',
      weight: 'first',
      what: `${label}: on KeyDB, ${describeWider(each)}`,
      means: 'take the command from the user on both servers, or list it in gates.acceptRights of the plan',
    }));
    if (differences.length === 0) return [...hidden, ...rights];
    return [
      ...hidden,
      ...rights,
      {
        about: 'users',
        weight: 'first',
        what: `${label}: ${differences.join('; ')}`,
        means:
          'make the users of both servers equal before the target answers clients, or name those that no client uses in knownUsers',
      },
    ];
  });
}

export const refusals = ({ sources, target }: Question): Finding[] =>
  [...sources, ...(target === null ? [] : [target])]
    .filter((source) => source.refusals.length > 0)
    .map(({ label, refusals: all, elastiCache }) => ({
      about: 'permissions',
      weight: 'note',
      what: `${label} refused: ${all.join('; ')}`,
      means:
        elastiCache === null
          ? 'their facts are missing here; allow these commands to the user for a full assessment'
          : 'their facts are missing here; what ElastiCache offers to nobody (an unknown command) is not needed by the migration: docs/elasticache.md',
    }));
