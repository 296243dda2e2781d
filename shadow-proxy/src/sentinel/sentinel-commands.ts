/**
 * The commands of a Sentinel of Redis 7.0, answered from what is known of the masters. What would change a Sentinel is
 * refused: the plan names the masters, and the lease decides which proxy has a shard.
 *
 *   processCommand of Redis: known? ─▶ number of arguments? ─▶ logged in? ─▶ allowed to a subscriber? ─▶ answer
 */
import { timingSafeEqual } from 'node:crypto';
import { monotonicMs } from '../io/clock.js';
import { array, bulk, error, integer, map, OK, simple } from '../resp/encode.js';
import { compileGlob } from '../route/glob.js';
import { SILENT_S } from '../lease/other-processes.js';
import type { SentinelPlan } from '../plan/plan.js';
import { isName } from '../session/handlers/client-command.js';
import type { SentinelClient } from './client.js';
import { QUORUM, type Master, type Masters, type OtherSentinel } from './masters.js';

/** The release whose Sentinel this one answers like. */
const VERSION = '7.0.15';
const NO_MASTER = error('ERR No such master with that name');
const NOAUTH = 'NOAUTH Authentication required.';
const WRONGPASS = 'WRONGPASS invalid username-password pair or user is disabled.';
const NO_INTEGER = error('ERR value is not an integer or out of range');
const BAD_NAME = 'ERR Client names cannot contain spaces, newlines or special characters.';
/** Redis's defaults, which clients only show. */
const FAILOVER_MS = 180_000;
/** How many bytes of a command, and of its arguments, an error quotes. */
const QUOTED = 128;
const MAX_SUBSCRIPTIONS = 1_000;

/** What the answers depend on. */
export interface Surroundings {
  readonly masters: Masters;
  /** As in the present plan. */
  login(): Pick<SentinelPlan, 'username' | 'password'>;
  /** Counts clients, including the one that asks. */
  clients(): number;
  readonly maxClients: number;
  readonly port: number;
  /** In ms of the monotonic clock. */
  readonly startedAt: number;
}

export interface Request {
  readonly args: readonly Buffer[];
  readonly client: SentinelClient;
  readonly around: Surroundings;
}

interface Command {
  /** As in Redis: the number of arguments with the command itself; negative: at least so many. */
  readonly arity: number;
  readonly subcommands?: Readonly<Record<string, Command>>;
  answer(request: Request): Buffer;
}

/** The argument as text, in Latin-1: one character for each byte. */
const text = ({ args }: Request, index: number): string => args[index].toString('latin1');
const option = (request: Request, index: number): string => text(request, index).toLowerCase();
const refuse = (arity: number, why: string): Command => ({ arity, answer: () => error(`ERR shadow-proxy: ${why}`) });
const PLANNED = 'the masters are those of the plan: change `sentinel` in the plan, and restart the proxy';

/** Answers one command, as it stands in the request. */
export function answer(request: Request): Buffer {
  const { args, client, around } = request;
  let name = option(request, 0);
  let command: Command | undefined = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) return error(unknown(args));
  const { subcommands } = command;
  if (subcommands !== undefined && args.length > 1) {
    const sub = option(request, 1);
    command = Object.hasOwn(subcommands, sub) ? subcommands[sub] : undefined;
    if (command === undefined)
      return error(`ERR unknown subcommand '${quoted(args[1], QUOTED)}'. Try ${name.toUpperCase()} HELP.`);
    name += `|${sub}`;
  }
  const { arity } = command;
  if (arity > 0 ? args.length !== arity : args.length < -arity)
    return error(`ERR wrong number of arguments for '${name}' command`);
  if (around.login().password !== null && !client.isLoggedIn && name !== 'auth' && name !== 'hello')
    return error(NOAUTH);
  if (client.protocol === 2 && client.subscriptions > 0 && !FOR_SUBSCRIBERS.has(name))
    return error(
      `ERR Can't execute '${name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`,
    );
  return command.answer(request);
}

const FOR_SUBSCRIBERS: ReadonlySet<string> = new Set([
  'ping',
  'subscribe',
  'unsubscribe',
  'psubscribe',
  'punsubscribe',
]);

function unknown([name, ...args]: readonly Buffer[]): string {
  let shown = '';
  for (const arg of args) {
    if (shown.length >= QUOTED) break;
    shown += `'${quoted(arg, QUOTED - shown.length)}' `;
  }
  return `ERR unknown command '${quoted(name, QUOTED)}', with args beginning with: ${shown}`;
}

const quoted = (arg: Buffer, most: number): string => arg.subarray(0, most).toString('latin1');

// ── connection ──────────────────────────────────────────────────────────────────────────────────────────────────────

function ping({ args, client }: Request): Buffer {
  if (args.length > 2) return error("ERR wrong number of arguments for 'ping' command");
  if (client.protocol === 2 && client.subscriptions > 0) return array([bulk('pong'), bulk(args[1] ?? '')]);
  return args.length === 1 ? simple('PONG') : bulk(args[1]);
}

/** The error that refuses the login; null if it is right. */
function logIn({ client, around }: Request, username: string, password: string): string | null {
  const right = around.login();
  const isRight =
    right.password === null
      ? username === 'default'
      : username === right.username && equal(password, Buffer.from(right.password).toString('latin1'));
  if (isRight) client.isLoggedIn = true;
  return isRight ? null : WRONGPASS;
}

/** Takes as long whatever the first difference is. */
function equal(a: string, b: string): boolean {
  const [given, right] = [Buffer.from(a, 'latin1'), Buffer.from(b, 'latin1')];
  return timingSafeEqual(given.length === right.length ? given : right, right) && given.length === right.length;
}

function auth(request: Request): Buffer {
  const { args, around } = request;
  if (args.length > 3) return error('ERR syntax error');
  if (args.length === 2 && around.login().password === null)
    return error(
      'ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?',
    );
  const [user, password] = args.length === 2 ? ['default', text(request, 1)] : [text(request, 1), text(request, 2)];
  const refusal = logIn(request, user, password);
  return refusal === null ? OK : error(refusal);
}

function hello(request: Request): Buffer {
  const { args, client, around } = request;
  let protocol = client.protocol;
  if (args.length > 1) {
    const wanted = text(request, 1);
    if (!isInteger(wanted)) return error('ERR Protocol version is not an integer or out of range');
    if (wanted !== '2' && wanted !== '3') return error('NOPROTO unsupported protocol version');
    protocol = wanted === '2' ? 2 : 3;
  }
  let name: string | null = null;
  for (let i = 2; i < args.length; i++) {
    const word = option(request, i);
    if (word === 'auth' && i + 2 < args.length) {
      const refusal = logIn(request, text(request, i + 1), text(request, i + 2));
      if (refusal !== null) return error(refusal);
      i += 2;
    } else if (word === 'setname' && i + 1 < args.length) {
      name = text(request, ++i);
      if (!isName(name)) return error(BAD_NAME);
    } else {
      return error(`ERR Syntax error in HELLO option '${text(request, i)}'`);
    }
  }
  if (around.login().password !== null && !client.isLoggedIn)
    return error(
      'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time',
    );
  client.protocol = protocol;
  if (name !== null) client.name = name;
  const fields = {
    server: bulk('redis'),
    version: bulk(VERSION),
    proto: integer(protocol),
    id: integer(client.id),
    mode: bulk('sentinel'),
    modules: array([]),
  };
  return map(flat(fields), protocol);
}

const isInteger = (word: string): boolean => /^(0|-?[1-9]\d{0,17})$/.test(word);

const flat = (fields: Readonly<Record<string, Buffer>>): Buffer[] =>
  Object.entries(fields).flatMap(([name, value]) => [bulk(name), value]);

/** Settings of the connection that change nothing here. */
function onOrOff(request: Request): Buffer {
  return ['on', 'off'].includes(option(request, 2)) ? OK : error('ERR syntax error');
}

const CLIENT: Readonly<Record<string, Command>> = {
  id: { arity: 2, answer: ({ client }) => integer(client.id) },
  getname: { arity: 2, answer: ({ client }) => bulk(client.name || null, client.protocol) },
  setname: {
    arity: 3,
    answer(request) {
      const name = text(request, 2);
      if (!isName(name)) return error(BAD_NAME);
      request.client.name = name;
      return OK;
    },
  },
  'no-evict': { arity: 3, answer: onOrOff },
  help: {
    arity: 2,
    answer: () =>
      help(
        'CLIENT',
        { GETNAME: 'Return the name of the current connection.' },
        { ID: 'Return the ID of the current connection.' },
        { 'NO-EVICT (ON|OFF)': 'Protect current client connection from eviction.' },
        { 'SETNAME <name>': 'Assign the name <name> to the current connection.' },
      ),
  },
};

const help = (name: string, ...lines: readonly Readonly<Record<string, string>>[]): Buffer =>
  array(
    [
      `${name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:`,
      ...lines.flatMap((line) => Object.entries(line).flatMap(([form, what]) => [form, `    ${what}`])),
      'HELP',
      '    Prints this help.',
    ].map(simple),
  );

// ── events ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const rest = ({ args }: Request): string[] => args.slice(1).map((arg) => arg.toString('latin1'));

const subscribe = (request: Request, kind: 'channel' | 'pattern'): Buffer => {
  const names = rest(request);
  if (request.client.subscriptions + names.length > MAX_SUBSCRIPTIONS)
    return error(`ERR shadow-proxy: at most ${MAX_SUBSCRIPTIONS} subscriptions of a client are allowed`);
  return request.client.subscribe(kind, names);
};

// ── masters ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Answers for the master that the third argument names. */
const ofMaster =
  (found: (master: Master, request: Request) => Buffer, missing = (_protocol: 2 | 3): Buffer => NO_MASTER) =>
  (request: Request): Buffer => {
    const master = request.around.masters.byName(text(request, 2));
    return master === undefined ? missing(request.client.protocol) : found(master, request);
  };

const NULL_ARRAY = Buffer.from('*-1\r\n');

function describe(master: Master, protocol: 2 | 3): Buffer {
  const now = monotonicMs();
  const ago = (at: number): string => String(Math.round(now - at));
  const { name, address, id, downSince, seenAt } = master;
  const fields = {
    name,
    ip: address.host,
    port: String(address.port),
    runid: id,
    flags: downSince === null ? 'master' : 's_down,o_down,master',
    ...linkOf(ago(seenAt)),
    ...(downSince === null ? {} : { 's-down-time': ago(downSince), 'o-down-time': ago(downSince) }),
    'down-after-milliseconds': String(SILENT_S * 1_000),
    'info-refresh': ago(seenAt),
    'role-reported': 'master',
    'role-reported-time': ago(master.since),
    'config-epoch': String(master.epoch),
    'num-slaves': '0',
    'num-other-sentinels': String(master.others.length),
    quorum: String(QUORUM),
    'failover-timeout': String(FAILOVER_MS),
    'parallel-syncs': '1',
  };
  return fieldsOf(fields, protocol);
}

/** Another Sentinel is listed as long as the lease shows it. */
const describeOther = ({ id, address }: OtherSentinel, protocol: 2 | 3): Buffer =>
  fieldsOf(
    {
      name: id,
      ip: address.host,
      port: String(address.port),
      runid: id,
      flags: 'sentinel',
      ...linkOf('0'),
      'down-after-milliseconds': String(SILENT_S * 1_000),
      'last-hello-message': '0',
      'voted-leader': '?',
      'voted-leader-epoch': '0',
    },
    protocol,
  );

const linkOf = (seenMsAgo: string): Readonly<Record<string, string>> => ({
  'link-pending-commands': '0',
  'link-refcount': '1',
  'last-ping-sent': '0',
  'last-ok-ping-reply': seenMsAgo,
  'last-ping-reply': seenMsAgo,
});

const fieldsOf = (fields: Readonly<Record<string, string>>, protocol: 2 | 3): Buffer =>
  map(
    Object.entries(fields).flatMap(([name, value]) => [bulk(name), bulk(value)]),
    protocol,
  );

/** This Sentinel reads the lease alone: it is enough that it sees the lease. */
const ckquorum = ofMaster((master, { around: { masters } }) =>
  masters.sees(master)
    ? simple(`OK ${master.others.length + 1} usable Sentinels. Quorum and failover authorization can be reached`)
    : error(
        `NOQUORUM ${master.others.length + 1} usable Sentinels. shadow-proxy: no server has said for some seconds which proxy has the shard`,
      ),
);

/** A Sentinel of Redis that asks gets no vote: no other one may promote anything. */
function isMasterDown(request: Request): Buffer {
  const [host, port, epoch] = [text(request, 2), text(request, 3), text(request, 4)];
  if (!isInteger(port) || !isInteger(epoch)) return NO_INTEGER;
  const isDown = request.around.masters.all.some(
    ({ address, downSince }) => downSince !== null && address.host === host && String(address.port) === port,
  );
  return array([integer(isDown ? 1 : 0), bulk('*'), integer(0)]);
}

const replicas: Command = { arity: 3, answer: ofMaster(() => array([])) };

const SENTINEL: Readonly<Record<string, Command>> = {
  'get-master-addr-by-name': {
    arity: 3,
    answer: ofMaster(
      ({ address: { host, port } }) => array([bulk(host), bulk(String(port))]),
      (protocol) => (protocol === 3 ? bulk(null, 3) : NULL_ARRAY),
    ),
  },
  masters: {
    arity: 2,
    answer: ({ around: { masters }, client: { protocol } }) =>
      array(masters.all.map((master) => describe(master, protocol))),
  },
  master: { arity: 3, answer: ofMaster((master, { client: { protocol } }) => describe(master, protocol)) },
  replicas,
  slaves: replicas,
  sentinels: {
    arity: 3,
    answer: ofMaster(({ others }, { client: { protocol } }) =>
      array(others.map((other) => describeOther(other, protocol))),
    ),
  },
  ckquorum: { arity: 3, answer: ckquorum },
  myid: { arity: 2, answer: ({ around }) => bulk(around.masters.id) },
  'is-master-down-by-addr': { arity: 6, answer: isMasterDown },
  failover: { arity: 3, answer: ofMaster(() => error('NOGOODSLAVE No suitable replica to promote')) },
  // What is known of a master comes with the next look at its lease.
  reset: {
    arity: 3,
    answer(request) {
      const matches = compileGlob(text(request, 2));
      const names = request.around.masters.all.map(({ name }) => Buffer.from(name));
      return integer(names.filter((name) => matches(name, 0, name.length)).length);
    },
  },
  'pending-scripts': { arity: 2, answer: () => array([]) },
  flushconfig: { arity: 2, answer: () => OK },
  monitor: refuse(6, PLANNED),
  remove: { arity: 3, answer: ofMaster(() => error(`ERR shadow-proxy: ${PLANNED}`)) },
  set: { arity: -5, answer: ofMaster(() => error(`ERR shadow-proxy: ${PLANNED}`)) },
  config: refuse(-4, PLANNED),
  debug: refuse(-2, PLANNED),
  'info-cache': refuse(-3, 'INFO of a master is not kept: ask the master'),
  'simulate-failure': refuse(-3, 'a failure is not simulated: end the proxy to see a takeover'),
  help: {
    arity: 2,
    answer: () =>
      help(
        'SENTINEL',
        { 'CKQUORUM <master-name>': 'Check if this Sentinel sees which proxy has the shard.' },
        { 'GET-MASTER-ADDR-BY-NAME <master-name>': 'Return the ip and port number of the master with that name.' },
        { 'IS-MASTER-DOWN-BY-ADDR <ip> <port> <current-epoch> <runid>': 'Check if the master at ip:port is down.' },
        { 'MASTER <master-name>': 'Show the state and info of the specified master.' },
        { MASTERS: 'Show a list of masters and their state.' },
        { MYID: 'Return the ID of the Sentinel instance.' },
        { 'REPLICAS <master-name>': 'Show a list of replicas for this master and their state.' },
        { 'SENTINELS <master-name>': 'Show a list of Sentinel instances for this master and their state.' },
      ),
  },
};

// ── server ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const SECTIONS: Readonly<Record<string, (around: Surroundings) => Readonly<Record<string, string | number>>>> = {
  Server({ masters, port, startedAt }) {
    const uptime = Math.floor((monotonicMs() - startedAt) / 1_000);
    return {
      redis_version: VERSION,
      redis_mode: 'sentinel',
      process_id: process.pid,
      run_id: masters.id,
      tcp_port: port,
      uptime_in_seconds: uptime,
      uptime_in_days: Math.floor(uptime / 86_400),
    };
  },
  Clients: ({ clients, maxClients }) => ({ connected_clients: clients(), maxclients: maxClients }),
  Sentinel({ masters: { all } }) {
    const masters = all.map(({ name, address: { host, port }, downSince, others }, i) => [
      `master${i}`,
      `name=${name},status=${downSince === null ? 'ok' : 'odown'},address=${host}:${port},slaves=0,sentinels=${others.length + 1}`,
    ]);
    return {
      sentinel_masters: all.length,
      sentinel_tilt: 0,
      sentinel_tilt_since_seconds: -1,
      sentinel_running_scripts: 0,
      sentinel_scripts_queue_length: 0,
      sentinel_simulate_failure_flags: 0,
      ...(Object.fromEntries(masters) as Readonly<Record<string, string>>),
    };
  },
};
const ALL_SECTIONS: readonly string[] = ['all', 'default', 'everything'];

function info(request: Request): Buffer {
  const wanted = rest(request).map((section) => section.toLowerCase());
  const isWanted = (section: string): boolean =>
    wanted.length === 0 || wanted.some((each) => each === section.toLowerCase() || ALL_SECTIONS.includes(each));
  const sections = Object.entries(SECTIONS)
    .filter(([section]) => isWanted(section))
    .map(([section, fields]) =>
      [`# ${section}`, ...Object.entries(fields(request.around)).map(([name, value]) => `${name}:${value}`), ''].join(
        '\r\n',
      ),
    );
  return bulk(sections.join('\r\n'));
}

const role = ({ around: { masters } }: Request): Buffer =>
  array([bulk('sentinel'), array(masters.all.map(({ name }) => bulk(name)))]);

const none = (): Buffer => OK;

const COMMANDS: Readonly<Record<string, Command>> = {
  ping: { arity: -1, answer: ping },
  hello: { arity: -1, answer: hello },
  auth: { arity: -2, answer: auth },
  client: { arity: -2, subcommands: CLIENT, answer: none },
  sentinel: { arity: -2, subcommands: SENTINEL, answer: none },
  subscribe: { arity: -2, answer: (request) => subscribe(request, 'channel') },
  psubscribe: { arity: -2, answer: (request) => subscribe(request, 'pattern') },
  unsubscribe: { arity: -1, answer: (request) => request.client.unsubscribe('channel', rest(request)) },
  punsubscribe: { arity: -1, answer: (request) => request.client.unsubscribe('pattern', rest(request)) },
  publish: { arity: 3, answer: () => error('ERR Only HELLO messages are accepted by Sentinel instances.') },
  info: { arity: -1, answer: info },
  role: { arity: 1, answer: role },
};
