/**
 * Makes the plan from a file of the right shape: splits addresses, reads secrets and certificates, and fills in
 * defaults.
 */
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { announcedAdmin, formatAddress, formatUrl, interpolate, parseAddress, parseUrl, UrlError } from './endpoint.js';
import type { Address, ClientTls, Endpoint, Listen, ListenTls, ParsedUrl, ProxyProtocol } from './endpoint.js';
import type { PlanPath, PlanProblem } from './errors.js';
import { readWhole } from './file.js';
import { networkProblem } from './networks.js';
import { parseSlots } from './owns.js';
import type {
  AdminPlan,
  CheckPlan,
  ClusterPlan,
  ClusterReplicas,
  ClusterSide,
  Gates,
  GuardPlan,
  OpenTelemetryPlan,
  Plan,
  ReceiverPlan,
  RolloutPlan,
  SentinelMaster,
  SentinelPlan,
  ShardPlan,
  WorkloadPlan,
} from './plan.js';
import type {
  AdminFile,
  CheckFile,
  ClusterFile,
  EndpointFile,
  GuardFile,
  OpenTelemetryFile,
  PlanFile,
  ReceiverFile,
  RolloutFile,
  SentinelFile,
  ShardFile,
} from './schema.js';
import type { Owns } from '../route/owner.js';

export interface Surroundings {
  /** Paths in the plan are relative to this directory. */
  readonly directory: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Collects every problem instead of stopping at the first. `plan` is null if there are any problems. */
export function normalise(file: PlanFile, surroundings: Surroundings): { plan: Plan | null; problems: PlanProblem[] } {
  const problems: PlanProblem[] = [];
  const read = new Reader(surroundings, problems);
  const { topology, onAuthorityChange, hashFieldTtl, threads, sockets, failover, limits, jobs } = file;
  const { laneNames, ledger, gates, knownClients, knownUsers, fence } = file;
  if ((file.shards === undefined) === (file.cluster === undefined))
    problems.push(
      file.shards === undefined
        ? { path: ['shards'], message: 'is missing: give shards, or cluster for a Redis Cluster' }
        : {
            path: ['cluster'],
            message: 'and shards are both given: the shards of a cluster are derived, leave one out',
          },
    );
  const cluster = file.cluster ? read.cluster(file.cluster, ['cluster']) : null;
  const shards = sharedTargets((file.shards ?? []).map((shard, i) => read.shard(shard, ['shards', i])));
  const plan: Plan = {
    version: 1,
    name: file.name,
    shards,
    cluster,
    workloads: file.workloads.map(({ channels = [], ...rest }) => workload({ ...rest, channels }, file)),
    default: workload({ ...file.default, name: 'default', keys: [], channels: [] }, file),
    gates,
    checks: file.checks.flatMap((each, i) => read.check(each, ['checks', i]) ?? []),
    hooks: file.hooks.map(({ workloads = null, ...hook }) => ({ ...hook, workloads })),
    guard: file.guard === undefined ? null : guard(file.guard),
    rollout: file.rollout === undefined ? null : rollout(file.rollout),
    topology,
    onAuthorityChange,
    hashFieldTtl,
    threads,
    sockets,
    laneNames,
    failover,
    admin: read.admin(file.admin, ['admin']) ?? NO_ADMIN,
    sentinel: file.sentinel ? read.sentinel(file.sentinel, file, shards) : null,
    state: resolve(surroundings.directory, file.state),
    limits,
    jobs,
    knownClients,
    knownUsers,
    fence,
    ledger,
    opentelemetry: file.opentelemetry ? read.opentelemetry(file.opentelemetry, ['opentelemetry']) : null,
    notify: file.notify.flatMap((receiver, i) => read.receiver(receiver, ['notify', i]) ?? []),
  };
  return { plan: problems.length === 0 ? plan : null, problems };
}

const ANY_HOST: readonly string[] = ['0.0.0.0', '::'];

/** Placeholder for an admin address that cannot be read, while the other problems are collected. */
const NO_ADMIN: AdminPlan = { host: '', port: 0, token: null };

/** Whether a receiver of this kind has a secret besides its URL. */
const SECRETS: Readonly<Record<ReceiverPlan['kind'], 'required' | 'optional' | 'none'>> = {
  webhook: 'required',
  slack: 'none',
  pagerduty: 'required',
  alertmanager: 'optional',
};
/** The message does not contain the URL, which may be a secret. @throws {UrlError} */
function httpUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) throw new UrlError('has no http or https URL');
  return text.replace(/\/+$/, '');
}

const PAGERDUTY = 'https://events.pagerduty.com';

type WorkloadFile = Omit<WorkloadPlan, 'percent' | 'writer' | 'shadowReads' | 'failover' | 'gates'> & {
  readonly percent?: number;
  readonly writer?: string | null;
  readonly shadowReads?: number;
  readonly failover?: Plan['failover'];
  readonly gates?: Partial<Gates>;
};

const workload = (
  { percent = 100, writer = null, shadowReads = 100, failover, gates, ...rest }: WorkloadFile,
  plan: Pick<Plan, 'failover' | 'gates'>,
): WorkloadPlan => ({
  ...rest,
  percent,
  writer,
  shadowReads,
  failover: failover ?? plan.failover,
  gates: { ...plan.gates, ...gates },
});

type HalfShard = { readonly [K in keyof ShardPlan]: ShardPlan[K] | null };

function sharedTargets(shards: readonly HalfShard[]): ShardPlan[] {
  const read = shards.filter(
    (shard): shard is ShardPlan => shard.listen !== null && shard.source !== null && shard.target !== null,
  );
  return read.map((shard) => ({
    ...shard,
    sharedTarget:
      shard.owns !== null || read.some((other) => other !== shard && sameServer(other.target, shard.target)),
  }));
}

/** The other shards of the plan that have the same target as the shard. */
export const neighboursOf = (plan: Plan, shard: ShardPlan): readonly ShardPlan[] =>
  plan.shards.filter((other) => other.name !== shard.name && sameServer(other.target, shard.target));

/** The names of the other shards that have the same servers as the shard. A source is shared only within a cluster. */
export const sharersOf = (plan: Plan, shard: ShardPlan): Readonly<Record<'source' | 'target', readonly string[]>> => {
  const others = plan.shards.filter(({ name }) => name !== shard.name);
  return {
    source: shard.sharedSource
      ? others.filter(({ source }) => sameServer(source, shard.source)).map(({ name }) => name)
      : [],
    target: neighboursOf(plan, shard).map(({ name }) => name),
  };
};

/**
 * Whether both certainly lead to one server: they name the same address, or the same master of Sentinels that both
 * name.
 */
export function sameServer(a: Endpoint, b: Endpoint): boolean {
  if (a.kind === 'server' && b.kind === 'server') return a.host === b.host && a.port === b.port;
  if (a.kind === 'server' || b.kind === 'server' || a.master !== b.master) return false;
  // A node ID belongs to one node only.
  if (a.kind === 'cluster' || b.kind === 'cluster') return a.kind === b.kind;
  return a.sentinels.some((s) => b.sentinels.some((other) => s.host === other.host && s.port === other.port));
}

class Reader {
  constructor(
    private readonly surroundings: Surroundings,
    private readonly problems: PlanProblem[],
  ) {}

  shard(file: ShardFile, path: PlanPath): HalfShard {
    return {
      name: file.name,
      listen: this.#listen(file, path),
      source: this.#endpoint(file, 'source', path),
      target: this.#endpoint(file, 'target', path),
      owns: this.#owns(file.owns, [...path, 'owns']),
      sharedTarget: false,
      slots: null,
      sharedSource: false,
      announce: null,
      replica: null,
      region: file.region ?? null,
      admin: file.admin ? this.admin(file.admin, [...path, 'admin']) : null,
    };
  }

  cluster(file: ClusterFile, path: PlanPath): ClusterPlan | null {
    const source = this.#clusterSide(file, 'source', path);
    const target = this.#clusterSide(file, 'target', path);
    const listen = this.#listen(file, path);
    const announce = listen && this.#try([...path, 'announce'], () => this.#announce(file, listen));
    const admin = file.admin ? this.admin(file.admin, [...path, 'admin']) : null;
    const replicas = announce && file.replicas ? this.#replicas(file.replicas, announce, path) : null;
    if (source === null || target === null || listen === null || announce === null) return null;
    return { source, target, listen, announce, cuts: [...file.cuts].sort((a, b) => a - b), replicas, admin };
  }

  #announce({ announce }: ClusterFile, listen: Listen): string {
    if (announce !== undefined) return this.#announced(announce);
    if (ANY_HOST.includes(listen.host))
      throw new UrlError(
        `is missing, and listen is ${listen.host}: give the host:port by which clients reach the proxies`,
      );
    return formatAddress(listen);
  }

  sentinel(file: SentinelFile, plan: PlanFile, shards: readonly ShardPlan[]): SentinelPlan | null {
    const path = ['sentinel'];
    if (plan.cluster !== undefined) {
      this.#problem(path, 'and cluster are both given: clients of a cluster do not ask Sentinels, leave sentinel out');
      return null;
    }
    const listen = this.#listen(file, path, 'the password of its clients is in passwordFile');
    const announce = listen && this.#try([...path, 'announce'], () => this.#reachedAt(file.announce, listen));
    const password = this.#secret(file.passwordFile, [...path, 'passwordFile']);
    if (password === '') this.#problem([...path, 'passwordFile'], 'contains an empty password');
    const names = (plan.shards ?? []).map(({ name }) => name);
    const masters = this.#masters(file, names, shards, [...path, 'masters']);
    return listen && announce && { listen, announce, username: file.username, password, masters };
  }

  #masters(
    { masters }: SentinelFile,
    names: readonly string[],
    shards: readonly ShardPlan[],
    path: PlanPath,
  ): readonly SentinelMaster[] {
    const given =
      masters ??
      shards.flatMap(({ name: shard, source }) =>
        source.kind === 'sentinel' ? [{ name: source.master, shard, announce: undefined }] : [],
      );
    if (given.length === 0)
      this.#problem(path, 'is missing, and no source is given by Sentinels: give each master a name and its shard');
    return given.flatMap(({ name, shard, announce }, i) => {
      if (!names.includes(shard))
        this.#problem([...path, i, 'shard'], `is ${shard}, and the plan has ${names.join(', ')}`);
      const listen = shards.find((each) => each.name === shard)?.listen;
      const address = listen && this.#try([...path, i, 'announce'], () => this.#reachedAt(announce, listen));
      return address ? [{ name, shard, announce: address }] : [];
    });
  }

  /** The address by which others reach what listens there. @throws {UrlError} */
  #reachedAt(announce: string | undefined, listen: Listen): Address {
    if (announce === undefined && ANY_HOST.includes(listen.host))
      throw new UrlError(`is missing, and listen is ${listen.host}: give the host:port by which clients reach it`);
    const { host, port } = announce === undefined ? listen : parseAddress(interpolate(announce, this.surroundings.env));
    // It becomes part of the name of a connection, in which a semicolon separates two addresses.
    if (!/^[\w.:%-]+$/.test(host))
      throw new UrlError(`has the host ${host}: letters, digits, dot and dash are allowed`);
    return { host, port };
  }

  #announced(announce: string): string {
    const given = interpolate(announce, this.surroundings.env);
    parseAddress(given.replaceAll('{shard}', 'slots-0'));
    return given;
  }

  #replicas(
    { port, announce }: NonNullable<ClusterFile['replicas']>,
    ofMasters: string,
    path: PlanPath,
  ): ClusterReplicas | null {
    return this.#try([...path, 'replicas', 'announce'], () => {
      const given = announce === undefined ? ofMasters.replace(/:\d+$/, `:${port}`) : this.#announced(announce);
      if (given === ofMasters)
        throw new UrlError(`is ${given}, which is announced for the master already: give it another port or name`);
      return { port, announce: given };
    });
  }

  #clusterSide(file: ClusterFile, side: 'source' | 'target', path: PlanPath): ClusterSide | null {
    const given = typeof file[side] === 'string' ? { url: file[side] } : file[side];
    const where = [...path, side];
    return this.#try(typeof file[side] === 'string' ? where : [...where, 'url'], () => {
      const url = parseUrl(interpolate(given.url, this.surroundings.env), true);
      if (url.master !== null)
        throw new UrlError('is a Sentinel URL: write redis://host:port,host:port with nodes of the cluster');
      if (url.db !== 0) throw new UrlError('has a database: a cluster has only database 0, so leave it out');
      if (url.addresses.some(({ port }) => port === 0)) throw new UrlError('has port 0, which is not a valid port');
      const password = this.#password(given.passwordFile, url, where);
      const tls = this.#clientTls(file, side, url, path);
      return { label: formatUrl({ ...url, password }), tls, username: url.username, password, seeds: url.addresses };
    });
  }

  #owns(owns: ShardFile['owns'], path: PlanPath): Owns | null {
    if (owns === undefined) return null;
    if (Array.isArray(owns)) return { patterns: owns };
    return this.#try([...path, 'slots'], () => ({ slots: parseSlots(owns.slots) }));
  }

  admin(file: AdminFile, path: PlanPath): AdminPlan | null {
    return this.#try([...path, 'listen'], () => {
      const { host, port } = parseAddress(interpolate(file.listen, this.surroundings.env));
      if (file.token && file.tokenFile)
        this.#problem([...path, 'tokenFile'], 'and token are both given: leave one out');
      const token = file.token
        ? this.#try([...path, 'token'], () => interpolate(file.token!, this.surroundings.env))
        : this.#secret(file.tokenFile, [...path, 'tokenFile']);
      if (token === '') this.#problem([...path, file.token ? 'token' : 'tokenFile'], 'contains an empty token');
      for (const [i, announce] of (file.announce ?? []).entries())
        this.#try([...path, 'announce', i], () => announcedAdmin(announce, 'a', this.surroundings.env));
      return { host, port, token };
    });
  }

  receiver(file: ReceiverFile, path: PlanPath): ReceiverPlan | null {
    const { kind, name = kind, events } = file;
    const secret = this.#secret(file.secretFile, [...path, 'secretFile']);
    if (secret === '') this.#problem([...path, 'secretFile'], 'contains an empty secret');
    const rule = SECRETS[kind];
    if (rule === 'none' && secret !== null)
      this.#problem([...path, 'secretFile'], `is given, but ${kind} has no secret beside its URL: leave it out`);
    if (rule === 'required' && file.secretFile === undefined)
      this.#problem([...path, 'secretFile'], `is missing: ${kind} needs a file with its secret`);
    const url = this.#receiverUrl(file, path);
    return url === null ? null : { name, kind, url, secret, events };
  }

  /** No message contains the URL, which may be a secret. */
  #receiverUrl({ kind, url, urlFile }: ReceiverFile, path: PlanPath): string | null {
    if (url !== undefined && urlFile !== undefined)
      this.#problem([...path, 'urlFile'], 'and url are both given: leave one out');
    const field = [...path, urlFile === undefined ? 'url' : 'urlFile'];
    return this.#try(field, () => {
      const given = url === undefined ? this.#secret(urlFile, field)?.trim() : interpolate(url, this.surroundings.env);
      const text = given ?? (urlFile === undefined && kind === 'pagerduty' ? PAGERDUTY : null);
      if (text === null) {
        if (urlFile === undefined) this.#problem(field, `is missing: ${kind} needs url or urlFile`);
        return null;
      }
      return httpUrl(text);
    });
  }

  check(file: CheckFile, path: PlanPath): CheckPlan | null {
    const { name, workloads = null, deadlineMs, prometheus, http, command, query, max, min, tokenFile } = file;
    const kinds = (['prometheus', 'http', 'command'] as const).filter((kind) => file[kind] !== undefined);
    if (kinds.length !== 1) {
      const found = kinds.length === 0 ? 'names nothing to ask' : `has ${kinds.join(' and ')}`;
      this.#problem(path, `${found}: give prometheus, http or command, one of them`);
      return null;
    }
    const [kind] = kinds;
    for (const field of ['query', 'max', 'min'] as const)
      if (kind !== 'prometheus' && file[field] !== undefined)
        this.#problem([...path, field], `is given, but the check asks ${kind}: leave it out`);
    if (command !== undefined) {
      if (tokenFile !== undefined)
        this.#problem([...path, 'tokenFile'], 'is given, but the check runs a program: leave it out');
      return { name, workloads, deadlineMs, kind: 'command', command };
    }
    const token = this.#secret(tokenFile, [...path, 'tokenFile'])?.trim() ?? null;
    const url = this.#try([...path, kind], () => httpUrl(interpolate((prometheus ?? http)!, this.surroundings.env)));
    if (http !== undefined) return url === null ? null : { name, workloads, deadlineMs, kind: 'http', url, token };
    if (query === undefined) this.#problem([...path, 'query'], 'is missing: prometheus needs a query');
    if (max === undefined && min === undefined)
      this.#problem([...path, 'max'], 'is missing, and so is min: give the limit of the query');
    if (max !== undefined && min !== undefined && min > max)
      this.#problem([...path, 'min'], `is ${min}, more than max, ${max}: no value is within both`);
    if (url === null || query === undefined) return null;
    return {
      ...{ name, workloads, deadlineMs, kind: 'prometheus', url, query, max: max ?? null, min: min ?? null, token },
    };
  }

  opentelemetry({ url, headersFile, ...rest }: OpenTelemetryFile, path: PlanPath): OpenTelemetryPlan | null {
    const lines = (this.#secret(headersFile, [...path, 'headersFile']) ?? '').split('\n').filter((line) => line.trim());
    const headers = lines.map((line) => /^([\w-]+):\s*(.+?)\s*$/.exec(line));
    if (headers.includes(null))
      this.#problem([...path, 'headersFile'], 'has a line that is not a header: write `name: value`');
    const parsed = this.#try([...path, 'url'], () => httpUrl(interpolate(url, this.surroundings.env)));
    if (parsed === null) return null;
    return { ...rest, url: parsed, headers: Object.fromEntries(headers.map((each) => [each?.[1], each?.[2]])) };
  }

  #listen(
    file: Pick<ShardFile, 'listen' | 'tls' | 'proxyProtocol'>,
    path: PlanPath,
    login = 'clients log in with those of the source, so leave it out',
  ): Listen | null {
    const proxyProtocol = this.#proxyProtocol(file.proxyProtocol, [...path, 'proxyProtocol', 'from']);
    return this.#try([...path, 'listen'], () => {
      const url = parseUrl(interpolate(file.listen, this.surroundings.env));
      if (url.master !== null)
        throw new UrlError('is a Sentinel URL: the proxy listens at redis://host:port or rediss://host:port');
      if (url.username !== null || url.password !== null) {
        throw new UrlError(`holds a user or password: ${login}`);
      }
      if (url.db !== 0) throw new UrlError('has a database: clients select it, so leave it out');
      const [address] = url.addresses;
      return { ...address, label: formatUrl(url), tls: this.#listenTls(file, url, path), proxyProtocol };
    });
  }

  #proxyProtocol(file: ShardFile['proxyProtocol'], path: PlanPath): ProxyProtocol | null {
    for (const [i, network] of (file?.from ?? []).entries()) {
      const problem = networkProblem(network);
      if (problem !== null) this.#problem([...path, i], `is ${JSON.stringify(network)}, which ${problem}`);
    }
    if (file === undefined || file.mode === 'off') return null;
    if (file.from.length === 0)
      this.#problem(path, `is empty, and mode is ${file.mode}: list the networks of the load balancers`);
    return { mode: file.mode, from: file.from };
  }

  #listenTls(file: Pick<ShardFile, 'tls'>, url: ParsedUrl, path: PlanPath): ListenTls | null {
    const files = file.tls?.listen;
    const where = [...path, 'tls', 'listen'];
    if (url.scheme === 'redis') {
      if (files) this.#problem(where, 'is given, but listen is redis://, without TLS: write rediss:// or leave it out');
      return null;
    }
    if (!files) throw new UrlError('is rediss://, so tls.listen with cert and key is needed');
    if (files.requireClientCert && !files.ca) {
      this.#problem([...where, 'requireClientCert'], 'is true, so ca is needed: the CA of the clients’ certificates');
    }
    const pem = this.#pem(files, where);
    return { cert: pem.cert!, key: pem.key!, ca: pem.ca, requireClientCert: files.requireClientCert };
  }

  #endpoint(file: ShardFile, side: 'source' | 'target', path: PlanPath): Endpoint | null {
    const given: Exclude<EndpointFile, string> = typeof file[side] === 'string' ? { url: file[side] } : file[side];
    const where = [...path, side];
    return this.#try(typeof file[side] === 'string' ? where : [...where, 'url'], () => {
      const url = parseUrl(interpolate(given.url, this.surroundings.env));
      if (url.addresses.some(({ port }) => port === 0)) throw new UrlError('has port 0, which is not a valid port');
      const password = this.#password(given.passwordFile, url, where);
      const tls = this.#clientTls(file, side, url, path);
      const common = { tls, username: url.username, password, db: url.db };
      const sentinelLogin = {
        sentinelUsername: given.sentinelUsername ?? null,
        sentinelPassword: this.#secret(given.sentinelPasswordFile, [...where, 'sentinelPasswordFile']),
      };
      const label = formatUrl({ ...url, ...common });
      if (url.master === null) return { kind: 'server', label, ...common, ...url.addresses[0] };
      return { kind: 'sentinel', label, ...common, sentinels: url.addresses, master: url.master, ...sentinelLogin };
    });
  }

  /** The password from the file, or from the URL. */
  #password(file: string | undefined, url: ParsedUrl, where: PlanPath): string | null {
    const password = this.#secret(file, [...where, 'passwordFile']);
    if (password !== null && url.password !== null)
      this.#problem([...where, 'passwordFile'], 'and a password in url are both given: leave one out');
    return password ?? url.password;
  }

  #clientTls(
    file: Pick<ShardFile, 'tls'>,
    side: 'source' | 'target',
    url: ParsedUrl,
    path: PlanPath,
  ): ClientTls | null {
    const files = file.tls?.[side];
    if (url.scheme.startsWith('rediss')) {
      const { servername, ...pems } = files ?? {};
      return { ...this.#pem(pems, [...path, 'tls', side]), ...(servername === undefined ? {} : { servername }) };
    }
    if (files)
      this.#problem(
        [...path, 'tls', side],
        `is given, but ${side} is ${url.scheme}://, without TLS: write rediss or leave it out`,
      );
    return null;
  }

  #pem(
    files: { ca?: string; cert?: string; key?: string },
    path: PlanPath,
  ): { ca?: Buffer; cert?: Buffer; key?: Buffer } {
    if ((files.cert === undefined) !== (files.key === undefined)) {
      this.#problem([...path, files.cert === undefined ? 'key' : 'cert'], 'is given alone: give both cert and key');
    }
    const found: { ca?: Buffer; cert?: Buffer; key?: Buffer } = {};
    for (const name of ['ca', 'cert', 'key'] as const) {
      const bytes = this.#file(files[name], [...path, name]);
      if (bytes) found[name] = bytes;
    }
    try {
      createSecureContext(found);
    } catch (error) {
      this.#problem(path, `holds PEM files that cannot be used together: ${(error as Error).message}`);
    }
    return found;
  }

  /** A file's text without its last line break; null if no file is named. */
  #secret(file: string | undefined, path: PlanPath): string | null {
    return (
      this.#file(file, path)
        ?.toString('utf8')
        .replace(/\r?\n$/, '') ?? null
    );
  }

  #file(file: string | undefined, path: PlanPath): Buffer | null {
    if (file === undefined) return null;
    const full = resolve(this.surroundings.directory, file);
    try {
      return readWhole(full);
    } catch (error) {
      this.#problem(path, `is ${full}, which cannot be read (${(error as NodeJS.ErrnoException).code})`);
      return null;
    }
  }

  #try<T>(path: PlanPath, work: () => T): T | null {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof UrlError)) throw error;
      this.#problem(path, error.message);
      return null;
    }
  }

  #problem(path: PlanPath, message: string): void {
    this.problems.push({ path, message });
  }
}

const guard = ({ maxP99Ms, workloads, ...rest }: GuardFile): GuardPlan => ({
  ...rest,
  maxP99Ms: maxP99Ms ?? null,
  workloads: workloads ?? null,
});

function rollout({ holdMinutes, window, workloads }: RolloutFile): RolloutPlan {
  const [from, to] = (window ?? '').split('-').map((time): number => {
    const [hours, minutes] = time.split(':').map(Number);
    return hours * 60 + minutes;
  });
  return { holdMinutes, window: window === undefined ? null : { from, to }, workloads: workloads ?? null };
}
