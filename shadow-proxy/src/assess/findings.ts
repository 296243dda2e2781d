/**
 * Go or no-go, line by line: pure decisions over what was read.
 *
 * Room: assess: go or no-go: pure decisions over facts read from live servers.
 * Called by: cli.
 * Calls: text, resp, plan, command, upstream.
 */
import { formsOf, HARMLESS, supports, titleOf, type Form } from '../command/forms.js';
import { COMMANDS } from '../command/table.generated.js';
import { compareUsers } from '../command/users.js';
import { count, number } from '../text/figures.js';
import type { InstanceFacts } from './facts.js';

/**
 * `go` speaks for a migration, `no-go` against it; `first` has to be done before it; `note` should be known;
 * `unknown` could not be told.
 */
export type Weight = 'go' | 'no-go' | 'first' | 'note' | 'unknown';

export interface Finding {
  readonly about: string;
  readonly weight: Weight;
  readonly what: string;
  readonly means: string;
}

/** What only a managed Redis gives, which the operator may say that they need. */
export const MANAGED_ONLY: Readonly<Record<string, string>> = {
  sla: 'a contract about availability',
  patching: 'security fixes that somebody else installs',
  'global-datastore': 'replication between regions that somebody else runs',
  serverless: 'capacity that follows the load by itself',
};

export interface Question {
  readonly sources: readonly InstanceFacts[];
  readonly target: InstanceFacts | null;
  /** Keys of `MANAGED_ONLY`. */
  readonly requires: readonly string[];
  /** Commands a second that one proxy was measured to take (docs/capacity.md). */
  readonly proxyOps: number;
}

const BUSY = 0.7;
const IDLE = 0.3;
const MANY = 6;
const FEW = 3;
const NEAR_LIMIT = 0.8;
const FULL = 0.9;
/** A round trip takes so long, and so many times the median: it waited behind others. */
const [SPIKE_MS, SPIKE_TIMES] = [5, 5];
/** Of an idle server that says something about its host. */
const SOME_LOAD = 0.1;
/** A shard needs no more of a proxy than this. */
const PROXY_SHARE = 0.6;
/** Clocks may differ by as much as times to live are compared with. */
const CLOCK_MS = 50;
const LARGE_BYTES = 1 << 20;

export type Conclusion = 'go' | 'no-go' | 'unknown';

/** A reason against decides; then one for it; without either, there is nothing to gain. */
export function concludeFrom(findings: readonly Finding[]): { conclusion: Conclusion; because: string } {
  const of = (weight: Weight): Finding[] => findings.filter((finding) => finding.weight === weight);
  const against = of('no-go');
  if (against.length > 0) return { conclusion: 'no-go', because: against.map(({ about }) => about).join(', ') };
  const speaks = of('go');
  if (speaks.length > 0) return { conclusion: 'go', because: speaks.map(({ about }) => about).join(', ') };
  const untold = of('unknown');
  if (untold.length > 0) return { conclusion: 'unknown', because: untold.map(({ about }) => about).join(', ') };
  return { conclusion: 'no-go', because: 'nothing that KeyDB would help with was found' };
}

export function findingsOf(question: Question): Finding[] {
  const each = [
    cpu,
    connections,
    queueing,
    memory,
    modules,
    newerCommands,
    options,
    unseenCommands,
    managed,
    proxyCeiling,
    versions,
    clocks,
    replicas,
    settings,
    clients,
    users,
    scripts,
    walks,
    databases,
    largeKeys,
    evictions,
    refusals,
  ];
  return each.flatMap((judge) => judge(question));
}

// ── does it help ────────────────────────────────────────────────────────────────────────────────────────────────

function cpu({ sources }: Question): Finding[] {
  const told = sources.filter((source) => source.cpu !== null);
  const about = 'CPU';
  if (told.length < sources.length) {
    return [
      {
        about,
        weight: 'unknown',
        what: `${sources.length - told.length} of ${sources.length} servers do not tell their CPU time`,
        means: 'watch the CPU of the thread that runs commands where they run',
      },
    ];
  }
  const busy = told.filter((source) => source.cpu! >= BUSY);
  const shares = `${told.map((source) => percent(source.cpu!)).join(', ')} of one core`;
  if (busy.length >= MANY)
    return [
      {
        about,
        weight: 'go',
        what: `${busy.length} of ${told.length} instances use over ${percent(BUSY)} of their one thread (${shares})`,
        means: 'many instances bound by their one thread is what KeyDB is for',
      },
    ];
  if (busy.length > 0)
    return [
      {
        about,
        weight: 'go',
        what: `${busy.length} of ${told.length} instances use over ${percent(BUSY)} of their one thread (${shares})`,
        means: 'the thread is the limit',
      },
    ];
  if (told.length <= FEW && told.every((source) => source.cpu! < IDLE)) {
    return [
      {
        about,
        weight: 'no-go',
        what: `${told.length === 1 ? 'one instance' : `${told.length} instances`}, idle (${shares})`,
        means: 'more threads make nothing faster here: stay, or move for another reason',
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

function connections({ sources }: Question): Finding[] {
  return sources.flatMap(({ label, clients: { connected, max, rejected } }): Finding[] => {
    if (rejected > 0)
      return [
        {
          about: 'connections',
          weight: 'go',
          what: `${label} has refused ${number(rejected)} connections since it started`,
          means: 'its limit of clients is reached',
        },
      ];
    if (max !== null && connected >= max * NEAR_LIMIT)
      return [
        {
          about: 'connections',
          weight: 'go',
          what: `${label} has ${number(connected)} of ${number(max)} clients`,
          means: 'it is near its limit, and each connection costs its one thread',
        },
      ];
    return [];
  });
}

function queueing({ sources }: Question): Finding[] {
  return sources
    .filter(
      ({ ping: { p50, p99 }, cpu: share }) => (share ?? 1) >= SOME_LOAD && p99 >= SPIKE_MS && p99 >= p50 * SPIKE_TIMES,
    )
    .map(({ label, ping: { p50, p99, count: pings } }) => ({
      about: 'queueing',
      weight: 'go',
      what: `${label}: 1 of 100 PINGs took ${p99.toFixed(1)} ms, the median ${p50.toFixed(2)} ms (${pings} PINGs)`,
      means: 'commands wait behind others; look into SLOWLOG first: a slow command waits in KeyDB just as long',
    }));
}

// ── does it hurt ────────────────────────────────────────────────────────────────────────────────────────────────

function memory({ sources }: Question): Finding[] {
  const bound = sources.filter(
    ({ memory: { used, max }, cpu: share }) => max !== null && used >= max * FULL && (share ?? 0) < BUSY,
  );
  return bound.map(({ label, memory: { used, max, policy }, evicted }) => ({
    about: 'memory',
    weight: 'no-go',
    what: `${label} is bound by memory: ${mebibytes(used)} of ${mebibytes(max!)} (${policy ?? 'no policy told'}, ${number(evicted)} keys evicted), and not by CPU`,
    means: 'KeyDB holds no more in the same memory: give it more memory, or fewer keys',
  }));
}

function modules({ sources }: Question): Finding[] {
  const names = [...new Set(sources.flatMap((source) => source.modules))];
  return names.length === 0
    ? []
    : [
        {
          about: 'modules',
          weight: 'no-go',
          what: `modules are loaded: ${names.join(', ')}`,
          means: 'KeyDB has none of their types and commands',
        },
      ];
}

/** Commands that clients use and the target does not know. */
function newerCommands({ sources, target }: Question): Finding[] {
  // Servers before 7.0 do not name their subcommands.
  const tells = [...(target?.commands ?? [])].some((name) => name.includes('|'));
  const known = (name: string): boolean =>
    target === null || (name.includes('|') && !tells) ? KEYDB_COMMANDS.has(name) : target.commands.has(name);
  const used = new Map<string, number>();
  for (const source of sources) {
    for (const [name, calls] of source.calls)
      if (calls > 0 && !known(name) && name !== ASKED_HERE && !(titleOf(name) in HARMLESS))
        used.set(name, (used.get(name) ?? 0) + calls);
  }
  const libraries = sources.reduce((total, source) => total + source.functions, 0);
  const found: Finding[] = [];
  if (used.size > 0) {
    const named = [...used]
      .sort((a, b) => b[1] - a[1])
      .map(([name, calls]) => `${name.replace('|', ' ')} (${count(calls, 'call')})`);
    found.push({
      about: 'commands',
      weight: 'no-go',
      what: `the target lacks commands that clients use: ${named.join(', ')}`,
      means:
        'what has an effect is bridged while Redis answers, and fails for the clients once KeyDB does: change the applications first',
    });
  }
  if (libraries > 0)
    found.push({
      about: 'functions',
      weight: 'no-go',
      what: `${count(libraries, 'library', 'libraries')} of functions ${libraries === 1 ? 'is' : 'are'} loaded`,
      means: 'KeyDB has none: make them scripts first',
    });
  return found;
}

/** Options, argument forms and replies of commands that the target knows. */
function options({ sources, target }: Question): Finding[] {
  const isLacking = (form: Form, name: string): boolean =>
    !form.whole &&
    form.lacks === 'target' &&
    !(form.name in HARMLESS) &&
    !supports(form, name, 'target', target ?? NO_SERVER);
  const lacking = (name: string): Form[] => (formsOf(name) ?? []).filter((form) => isLacking(form, name));
  const found: Finding[] = [];
  const used = [
    ...new Set(sources.flatMap(({ calls }) => [...calls].flatMap(([name, times]) => (times > 0 ? [name] : [])))),
  ].sort();
  const replies = used.flatMap((name) => lacking(name).filter(({ how }) => how === 'reply')).map(({ name }) => name);
  if (replies.length > 0)
    found.push({
      about: 'replies',
      weight: 'first',
      what: `the target answers with other elements: ${replies.join(', ')}`,
      means: 'see whether your applications read what is missing',
    });
  const options = used
    .map((name) => ({ name, forms: lacking(name).filter(({ how }) => how === 'refused') }))
    .filter(({ forms }) => forms.length > 0);
  const seen = sources.flatMap(({ monitored }) => (monitored === null ? [] : [monitored]));
  if (seen.length < sources.length) {
    const named = options.map(
      ({ name, forms }) => `${titleOf(name)} (${forms.map((form) => form.name.slice(name.length + 1)).join(', ')})`,
    );
    if (named.length > 0)
      found.push({
        about: 'options',
        weight: 'note',
        what: `clients use commands of which the target refuses some options, and commandstats does not tell options: ${named.join('; ')}`,
        means:
          'look with --monitor 10s, which costs throughput, or see what the gate unsupported counts while the proxy runs',
      });
    return found;
  }
  const names = new Set(options.flatMap(({ forms }) => forms.map(({ name }) => name)));
  const counts = new Map<string, number>();
  for (const { forms } of seen)
    for (const [name, times] of forms) if (names.has(name)) counts.set(name, (counts.get(name) ?? 0) + times);
  const looked = `${number(seen.reduce((total, { commands }) => total + commands, 0))} commands seen in ${Math.max(...seen.map(({ ms }) => ms / 1000)).toFixed(1)} s`;
  if (counts.size > 0)
    found.push({
      about: 'options',
      weight: 'no-go',
      what: `the target refuses options that clients use: ${[...counts].map(([name, times]) => `${name} (${count(times, 'call')})`).join(', ')}; ${looked}`,
      means:
        'what has an effect is bridged while Redis answers, and fails for the clients once KeyDB does: change the applications first',
    });
  else if (seen.some(({ commands }) => commands > 0))
    found.push({
      about: 'options',
      weight: 'note',
      what: `no option that the target refuses, in ${looked}`,
      means: 'it was a short look: the gate unsupported counts all of them while the proxy runs',
    });
  else
    found.push({
      about: 'options',
      weight: 'unknown',
      what: 'MONITOR showed no command at all',
      means: 'look again while clients work',
    });
  return found;
}

const NO_SERVER = { version: '', isKeydb: true, commands: new Set<string>() };
/** A server that has run no command on a key for a client does not tell which ones the clients use. */
const unseenCommands = ({ sources }: Question): Finding[] =>
  sources
    .filter(({ calls }) => [...calls].every(([name, times]) => times === 0 || !ON_KEYS.has(name)))
    .map(({ label }) => ({
      about: 'commands',
      weight: 'unknown',
      what: `${label} has counted no command on a key since it started, or since CONFIG RESETSTAT`,
      means: 'assess it again when clients have been at work: which of their commands the target lacks is not known',
    }));

/** What KeyDB 6.3.4 knows, where no target is there to be asked. */
const KEYDB_COMMANDS = new Set(COMMANDS.filter(([, , targetArity]) => targetArity !== 0).map(([name]) => name));
/** Commands with keys, but those that this tool itself sends. */
const ON_KEYS = new Set(
  COMMANDS.filter(([name, , , , ...keys]) => keys.length > 0 && !name.includes('|') && name !== 'type').map(
    ([name]) => name,
  ),
);
/** `readInstance` asks for it. */
const ASKED_HERE = 'function|list';

const managed = ({ requires }: Question): Finding[] =>
  requires.map((name) => ({
    about: 'managed',
    weight: 'no-go',
    what: `needed: ${MANAGED_ONLY[name]}`,
    means: 'only a managed service gives it, and none offers KeyDB',
  }));

function proxyCeiling({ sources, proxyOps }: Question): Finding[] {
  return sources
    .filter(({ opsPerSecond }) => opsPerSecond > proxyOps * PROXY_SHARE)
    .map(({ label, opsPerSecond }) => ({
      about: 'proxy',
      weight: 'no-go',
      what: `${label} gets ${number(opsPerSecond)} commands a second, over ${percent(PROXY_SHARE)} of the ${number(proxyOps)} that one proxy was measured to take`,
      means:
        'split the shard, or move some of its clients to another one first; where your machines take more, measure it (docs/capacity.md) and say so with --proxy-ops',
    }));
}

// ── what has to be done first ───────────────────────────────────────────────────────────────────────────────────

function versions({ sources, target }: Question): Finding[] {
  const found: Finding[] = [];
  for (const { label, version, mode, role, isKeydb } of sources) {
    if (mode === 'cluster')
      found.push({
        about: 'cluster',
        weight: 'no-go',
        what: `${label} runs in cluster mode`,
        means: 'the proxy speaks for one server, not for slots of a cluster',
      });
    if (role === 'slave')
      found.push({
        about: 'role',
        weight: 'first',
        what: `${label} is a replica`,
        means: 'assess, and name in the plan, its master (or its Sentinels)',
      });
    if (isKeydb)
      found.push({
        about: 'source',
        weight: 'first',
        what: `${label} is a KeyDB already`,
        means: 'is this the right address?',
      });
    else if (!(Number(version.split('.', 1)[0]) >= 4))
      found.push({
        about: 'version',
        weight: 'first',
        what: `${label} is Redis ${version}`,
        means: 'the kit is tested from 4.0 on: upgrade first',
      });
  }
  if (target !== null && !target.isKeydb)
    found.push({
      about: 'target',
      weight: 'note',
      what: `${target.label} is no KeyDB, but ${target.version}`,
      means: 'the kit works; what is told of KeyDB does not hold for it',
    });
  return found;
}

function clocks({ sources, target }: Question): Finding[] {
  const servers = [...sources, ...(target === null ? [] : [target])];
  return servers
    .filter(({ clock }) => Math.abs(clock.offsetMs) > CLOCK_MS + clock.errorMs)
    .map(({ label, clock }) => ({
      about: 'clocks',
      weight: 'first',
      what: `the clock of ${label} is ${clock.offsetMs} ms off this machine's`,
      means: 'keys with EXPIREAT end at different times: run NTP or chrony on all hosts',
    }));
}

function replicas({ sources }: Question): Finding[] {
  return sources.flatMap(({ label, replicas: all }) =>
    all.flatMap(({ address, reads }): Finding[] => {
      if (reads === null)
        return [
          {
            about: 'replicas',
            weight: 'first',
            what: `the replica ${address} of ${label} cannot be asked`,
            means: 'see that no client reads from it: such reads do not come through the proxy',
          },
        ];
      return reads === 0
        ? []
        : [
            {
              about: 'replicas',
              weight: 'first',
              what: `the replica ${address} of ${label} has answered ${count(reads, 'read')}`,
              means: 'they do not come through the proxy: point these clients at the proxy, too',
            },
          ];
    }),
  );
}

/** Settings of Redis 7 that KeyDB has not, as they are unless somebody has set them. */
const DEFAULTS: Readonly<Record<string, string>> = {
  'aof-timestamp-enabled': 'no',
  'propagation-error-behavior': 'ignore',
  appenddirname: 'appendonlydir',
  'repl-diskless-sync-max-replicas': '0',
  'aof-disable-auto-gc': 'no',
  'maxmemory-clients': '0',
  replicaof: '',
};
/** What has another name there, what a server sets for itself, and what is of no interest to a client. */
const ITS_OWN =
  /^((hash|list|set|zset)-max-listpack|replica-|io-threads|bind|port|dir|dbfilename|logfile|pidfile|unixsocket|syslog|supervised|proc-title|set-proc-title|oom-score|daemonize|cluster-|tls-|loglevel|databases|enable-|crash|use-exit|disable-thp|bgsave|aof_rewrite|jemalloc|server_cpulist|bio_cpulist|locale|shutdown-|socket-mark|bind-source|busy-reply|latency-tracking|sanitize|ignore-warnings|list-compress)/;

function settings({ sources, target }: Question): Finding[] {
  if (target === null || target.settings === null) return [];
  const theirs = target.settings;
  const lacking = new Map<string, string>();
  for (const source of sources)
    for (const [name, value] of source.settings ?? [])
      if (!theirs.has(name) && !ITS_OWN.test(name) && value !== DEFAULTS[name]) lacking.set(name, value);
  const differing = [
    'maxmemory-policy',
    'notify-keyspace-events',
    'timeout',
    'maxclients',
    'appendonly',
    'save',
  ].flatMap((name) => {
    const ours = sources
      .map((source) => source.settings?.get(name))
      .find((value) => value !== undefined && theirs.has(name) && value !== theirs.get(name));
    return ours === undefined ? [] : [`${name} (source ${quoted(ours)}, target ${quoted(theirs.get(name)!)})`];
  });
  const found: Finding[] = [];
  if (lacking.size > 0)
    found.push({
      about: 'settings',
      weight: 'note',
      what: `no counterpart: ${[...lacking].map(([name, value]) => `${name} (${quoted(value)})`).join(', ')}`,
      means: 'see which of them your applications count on',
    });
  if (differing.length > 0)
    found.push({
      about: 'settings',
      weight: 'first',
      what: `set otherwise: ${differing.join(', ')}`,
      means: 'set them on the target as they are on the source, or know why not',
    });
  return found;
}

function clients({ sources }: Question): Finding[] {
  return sources.flatMap(({ label, connections: all }): Finding[] => {
    if (all === null)
      return [
        {
          about: 'clients',
          weight: 'unknown',
          what: `${label} does not list its clients`,
          means: 'find out who connects: each must be pointed at the proxy',
        },
      ];
    if (all.length === 0) return [];
    const groups = new Map<string, number>();
    for (const { host, name, library } of all) {
      const who = [host, name, library].filter(Boolean).join(' ');
      groups.set(who, (groups.get(who) ?? 0) + 1);
    }
    const named = [...groups].sort((a, b) => b[1] - a[1]);
    const shown = named.slice(0, 8).map(([who, times]) => `${who} (${times})`);
    const more = named.length > 8 ? ` and ${named.length - 8} more` : '';
    return [
      {
        about: 'clients',
        weight: 'first',
        what: `${count(all.length, 'client')} of ${label}: ${shown.join(', ')}${more}`,
        means: 'each must be pointed at the proxy: who writes beside it makes the servers differ',
      },
    ];
  });
}

/** What the gate `users` will ask for before the first client is answered by the target. */
function users({ sources, target }: Question): Finding[] {
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
              'make the same users on the target; new users of KeyDB get all channels unless acl-pubsub-default is resetchannels',
          },
        ];
  }
  const known = new Set([...sources, target].map(({ askedAs }) => askedAs).filter((name) => name !== 'default'));
  return sources.flatMap(({ label, acl }): Finding[] => {
    const { differences, unknown } = compareUsers(acl, target.acl, known);
    if (unknown !== null)
      return [
        {
          about: 'users',
          weight: 'unknown',
          what: `${label}: ${unknown}`,
          means: 'whether clients may log in at the target is not known',
        },
      ];
    if (differences.length === 0) return [];
    return [
      {
        about: 'users',
        weight: 'first',
        what: `${label}: ${differences.join('; ')}`,
        means:
          'make the users of both alike before clients are answered by the target, or name those that no client uses in knownUsers',
      },
    ];
  });
}

function scripts({ sources }: Question): Finding[] {
  const calls = sources.reduce(
    (total, source) =>
      total +
      ['eval', 'evalsha', 'eval_ro', 'evalsha_ro'].reduce((sum, name) => sum + (source.calls.get(name) ?? 0), 0),
    0,
  );
  return calls === 0
    ? []
    : [
        {
          about: 'scripts',
          weight: 'note',
          what: `scripts ran ${number(calls)} times`,
          means:
            'they run under the one lock of KeyDB as they do in Redis; those that touch keys they do not declare are copied instead of repeated',
        },
      ];
}

/**
 * KeyDB answers these from a snapshot, during which it takes a key that is set for a new one: upstream/scan-page.ts.
 */
function walks({ sources }: Question): Finding[] {
  const used = ['keys', 'scan']
    .map((name) => [name, sources.reduce((sum, source) => sum + (source.calls.get(name) ?? 0), 0)] as const)
    .filter(([, calls]) => calls > 0);
  return used.length === 0
    ? []
    : [
        {
          about: 'walks',
          weight: 'first',
          what: used.map(([name, calls]) => `${name.toUpperCase()} was called ${number(calls)} times`).join(', '),
          means:
            'give SCAN a COUNT under 100, and KEYS to nobody, before KeyDB is used without the proxy: it loses times to live, and the means to save, where keys are set meanwhile (docs/handbook.md)',
        },
      ];
}

function databases({ sources }: Question): Finding[] {
  return sources
    .filter((source) => [...source.databases.keys()].some((db) => db !== 0))
    .map(({ label, databases: all }) => ({
      about: 'databases',
      weight: 'note',
      what: `${label} uses databases ${[...all].map(([db, keys]) => `${db} (${count(keys, 'key')})`).join(', ')}`,
      means: 'all are copied; patterns of workloads hold in each of them',
    }));
}

function largeKeys({ sources }: Question): Finding[] {
  return sources.flatMap(({ label, keySample: { keys, largest } }): Finding[] => {
    const large = largest.filter(({ bytes }) => bytes >= LARGE_BYTES);
    return large.length === 0
      ? []
      : [
          {
            about: 'large keys',
            weight: 'note',
            what: `${label}: among ${number(keys)} keys looked at there are ${large.map(({ type, bytes, db }) => `a ${type} of ${mebibytes(bytes)} in database ${db}`).join(', ')}`,
            means: 'they are copied in parts; a command over all of one holds up everybody, in KeyDB as in Redis',
          },
        ];
  });
}

/** What the source evicts, the target keeps: nothing tells the proxy which keys those are. */
const evictions = ({ sources }: Question): Finding[] =>
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

const refusals = ({ sources, target }: Question): Finding[] =>
  [...sources, ...(target === null ? [] : [target])]
    .filter((source) => source.refusals.length > 0)
    .map(({ label, refusals: all }) => ({
      about: 'permissions',
      weight: 'note',
      what: `${label} refused: ${all.join('; ')}`,
      means: 'what these tell is missing here; allow them to the user for a full answer',
    }));

const percent = (share: number): string => `${Math.round(share * 100)} %`;
const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
const quoted = (value: string): string => JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
