/**
 * CLIENT: the proxy answers for its own clients. First the authority decides whether the client's user may run the
 * command: the proxy sends it the command itself if that changes nothing there, otherwise a harmless one that needs the
 * same permission. A refusal is passed on as the server worded it.
 */
import { monotonicMs } from '../../io/clock.js';
import { continues, type Software } from '../../command/release.js';
import { bulk, encodeCommand, error, integer, OK, type Argument } from '../../resp/encode.js';
import { NOBODY } from '../../upstream/handshake.js';
import type { ClientState } from '../client-state.js';
import type { ConnectedClient } from '../clients.js';
import type { CommandContext } from '../context.js';

interface Answer {
  /** The command that is sent to the authority instead. */
  readonly instead?: readonly Argument[];
  reply(): Buffer;
  after?(): void;
}

const text = (context: CommandContext, index: number): string => context.argument(index).toString('utf8');
const option = (context: CommandContext, index: number): string => text(context, index).toUpperCase();

/** Whether CLIENT SETNAME accepts the name: printable characters, no spaces. */
export const isName = (name: string): boolean => /^[!-~]*$/.test(name);
/** Names that another proxy gives its connections: the client is a proxy of this kit, and this is no server. */
const OF_A_PROXY = /^shadow-proxy(-[a-z]+)?:/;
/** The longest name of a client, in bytes. CLIENT LIST has all names in one reply. */
const MAX_NAME = 1024;

/** The error for a client with this name; null if there is none. */
export function refusalOfName(name: string): string | null {
  if (name.length > MAX_NAME)
    return `ERR shadow-proxy: the client's name has ${name.length} characters: at most ${MAX_NAME} are allowed`;
  return OF_A_PROXY.test(name)
    ? 'ERR this is a shadow-proxy, not a server: set source and target to the addresses of the servers'
    : null;
}

const setName = (context: CommandContext): Answer => {
  const { argc } = context.parser;
  if (argc !== 3 || !isName(text(context, 2))) return { reply: () => OK };
  const name = text(context, 2);
  const refusal = refusalOfName(name);
  if (refusal !== null) return { reply: () => error(refusal) };
  return {
    instead: ['CLIENT', 'SETNAME', context.sequencer.servers.source.name],
    reply: () => {
      context.client.rename(name);
      return OK;
    },
  };
};

/** CLIENT SETINFO LIB-NAME or LIB-VER: where the server knows it, CLIENT LIST shows it. */
const setInfo = (context: CommandContext): Answer => {
  const [attribute, value] = context.parser.argc === 4 ? [option(context, 2), text(context, 3)] : ['', ''];
  if (value.length > MAX_NAME)
    return {
      reply: () =>
        error(
          `ERR shadow-proxy: the library's name or version has ${value.length} characters: at most ${MAX_NAME} are allowed`,
        ),
    };
  return {
    reply: () => {
      const { library } = context.client;
      if (attribute === 'LIB-NAME') library.name = value;
      if (attribute === 'LIB-VER') library.version = value;
      return OK;
    },
  };
};

/** A setting of a connection at the server, which many clients share: it is not applied. */
const setting = (context: CommandContext): Answer => {
  const valid = context.parser.argc === 3 && ['ON', 'OFF'].includes(option(context, 2));
  return { instead: valid ? ['CLIENT', text(context, 1), 'OFF'] : undefined, reply: () => OK };
};

/** The flags of a client in CLIENT LIST: a subscriber, in MULTI, blocked, READONLY; or none. */
function flagsOf(client: ClientState): string {
  const flags = [
    client.isSubscriber && 'P',
    client.transaction !== null && 'x',
    client.blocked?.isSent === true && 'b',
    client.isReadOnly && 'r',
  ];
  return flags.filter(Boolean).join('') || 'N';
}

/**
 * A client's line in CLIENT LIST, with the fields of Redis 7.0, and those of the source's release. `omem`: bytes that
 * the client has not read; `multi-mem`: of queued commands; `tot-mem`: all that the proxy holds for the client. The
 * proxy has no buffers of a fixed size, and does not count by client: `fd`, `qbuf`, `qbuf-free`, `argv-mem`, `rbs`,
 * `rbp`, `obl` and the fields of Redis 8 are 0.
 */
function describe({ client, bytes }: Pick<ConnectedClient, 'client' | 'bytes'>, source: Software | undefined): string {
  const { transaction, socket } = client;
  const [age, idle] = [client.connectedAt, client.activeAt].map((at) => Math.floor((monotonicMs() - at) / 1000));
  const unread = socket.writableLength;
  const fields = {
    id: client.id,
    addr: client.address,
    laddr: client.localAddress,
    fd: 0,
    name: client.name,
    age,
    idle,
    flags: flagsOf(client),
    db: client.db,
    ...subscriptionsOf(client),
    multi: transaction?.size ?? -1,
    ...(since(source, '7.4') && { watch: client.watch === null ? 0 : 1 }),
    ...{ qbuf: 0, 'qbuf-free': 0, 'argv-mem': 0, 'multi-mem': transaction?.bytes ?? 0, rbs: 0, rbp: 0, obl: 0 },
    oll: unread > 0 ? 1 : 0,
    omem: unread,
    'tot-mem': bytes,
    events: unread > 0 ? 'rw' : 'r',
    cmd: client.lastCommand?.name ?? 'NULL',
    user: client.credentials?.username ?? 'default',
    redir: -1,
    resp: client.protocol,
    ...(since(source, '7.2') && { 'lib-name': client.library.name, 'lib-ver': client.library.version }),
    ...(since(source, '8.0') && { 'io-thread': 0, 'tot-net-in': 0, 'tot-net-out': 0, 'tot-cmds': 0 }),
  };
  return `${Object.entries(fields)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')}\n`;
}

/** Whether the server is that release of Redis, or a later one. */
const since = (server: Software | undefined, version: string): boolean =>
  server !== undefined && continues(server, { name: 'redis', version });

const subscriptionsOf = ({ subscriptions }: ClientState): Readonly<Record<string, number>> => ({
  sub: subscriptions?.count('channel') ?? 0,
  psub: subscriptions?.count('pattern') ?? 0,
  ssub: subscriptions?.count('shard') ?? 0,
});

/** Whether a client is of a TYPE. */
const isOfType = ({ client }: ConnectedClient, type: string): boolean =>
  type.toLowerCase() === (client.isSubscriber ? 'pubsub' : 'normal');

function describeAll({ clients }: CommandContext, wanted: (each: ConnectedClient) => boolean): Buffer {
  const source = clients.sequencer.servers.source.traits.software;
  const lines = [...clients.sessions.values()].filter(wanted).map((each) => describe(each, source));
  return bulk(lines.join(''));
}

const list = (context: CommandContext): Answer => {
  const { argc } = context.parser;
  let wanted = (_each: ConnectedClient): boolean => true;
  if (argc > 3 && option(context, 2) === 'ID') {
    const ids = new Set<number>();
    for (let i = 3; i < argc; i++) ids.add(Number(text(context, i)));
    wanted = ({ client }) => ids.has(client.id);
  } else if (argc === 4) {
    const type = option(context, 3);
    wanted = (each) => isOfType(each, type);
  }
  return { reply: () => describeAll(context, wanted) };
};

const SYNTAX = 'ERR syntax error';

/** CLIENT KILL of clients of the proxy, by address or by filters. */
const kill = (context: CommandContext): Answer => {
  const instead = ['CLIENT', 'KILL', 'ID', NOBODY];
  const { argc } = context.parser;
  const old = argc === 3 ? text(context, 2) : null;
  const filters = old === null ? filtersOf(context) : null;
  let killed: ConnectedClient[] = [];
  return {
    // With too few arguments the server answers.
    instead: argc > 2 ? instead : undefined,
    reply: () => {
      if (typeof filters === 'string') return error(filters);
      const all = [...context.clients.sessions.values()];
      killed = all.filter((each) => (filters === null ? each.client.address === old : filters(each)));
      if (filters === null) return killed.length === 0 ? error('ERR No such client') : OK;
      return integer(killed.length);
    },
    after: () => {
      for (const victim of killed) {
        if (victim.client === context.client) context.end();
        else victim.destroy();
      }
    },
  };
};

/** Reads the filters of CLIENT KILL. @returns a function that selects clients, or the error as Redis words it */
function filtersOf(context: CommandContext): string | ((each: ConnectedClient) => boolean) {
  const { argc } = context.parser;
  if (argc % 2 !== 0) return SYNTAX;
  const filters: ((each: ConnectedClient) => boolean)[] = [];
  let skipMe = true;
  for (let i = 2; i < argc; i += 2) {
    const value = text(context, i + 1);
    switch (option(context, i)) {
      case 'ID':
        if (!/^[1-9]\d*$/.test(value)) return 'ERR client-id should be greater than 0';
        filters.push(({ client }) => client.id === Number(value));
        break;
      case 'ADDR':
        filters.push(({ client }) => client.address === value);
        break;
      case 'LADDR':
        filters.push(({ client }) => client.localAddress === value);
        break;
      case 'USER':
        filters.push(({ client: { credentials } }) => (credentials?.username ?? 'default') === value);
        break;
      case 'TYPE':
        if (!/^(normal|master|replica|slave|pubsub)$/i.test(value))
          return `ERR Unknown client type '${value.slice(0, 100)}'`;
        filters.push((each) => isOfType(each, value));
        break;
      case 'SKIPME':
        if (!/^(yes|no)$/i.test(value)) return SYNTAX;
        skipMe = value.toLowerCase() === 'yes';
        break;
      default:
        return SYNTAX;
    }
  }
  return (each) => filters.every((filter) => filter(each)) && (each.client !== context.client || !skipMe);
}

/** The subcommands that a transaction may have. They are answered when they are queued. */
const QUEUEABLE = new Set(['id', 'setname', 'getname', 'setinfo', 'capa', 'no-evict', 'no-touch', 'list', 'info']);

const handler =
  (name: string, answerOf: (context: CommandContext) => Answer) =>
  (context: CommandContext): void => {
    if (context.client.transaction !== null && !QUEUEABLE.has(name)) return notQueued(context, name);
    const { instead, reply, after } = answerOf(context);
    context.lanes.inquire(instead === undefined ? context.command : encodeCommand(instead), (refusal) => {
      const { transaction } = context.client;
      if (refusal !== null) {
        transaction?.spoil();
        context.reply(refusal);
      } else if (transaction !== null) {
        transaction.queueReply(reply());
      } else {
        context.reply(reply());
        after?.();
      }
    });
  };

const notQueued = (context: CommandContext, name: string): void =>
  context.refuse(`ERR shadow-proxy: CLIENT ${name.toUpperCase()} inside MULTI is not supported`);

/** CLIENT REPLY ON, OFF or SKIP. Only ON gets a reply. */
function replies(context: CommandContext): void {
  if (context.client.transaction !== null) return notQueued(context, 'reply');
  const mode = context.parser.argc === 3 ? option(context, 2) : '';
  const valid = mode === 'ON' || mode === 'OFF' || mode === 'SKIP';
  context.lanes.inquire(valid ? encodeCommand(['CLIENT', 'REPLY', 'ON']) : context.command, (refusal) => {
    if (refusal !== null) return context.reply(refusal);
    if (mode === 'SKIP' && context.client.replies === 'off') return;
    context.client.wants(mode === 'ON' ? 'on' : mode === 'OFF' ? 'off' : 'skip');
    if (mode === 'ON') context.reply(OK);
  });
}

/** CLIENT UNBLOCK id [TIMEOUT|ERROR], for a client of the proxy. */
function unblock(context: CommandContext): void {
  if (context.client.transaction !== null) return notQueued(context, 'unblock');
  const { argc } = context.parser;
  const how = argc === 4 ? option(context, 3) : 'TIMEOUT';
  const valid =
    (argc === 3 || argc === 4) && /^-?\d{1,18}$/.test(text(context, 2)) && (how === 'TIMEOUT' || how === 'ERROR');
  const blocked = valid ? context.clients.sessions.get(Number(text(context, 2)))?.client.blocked : undefined;
  context.lanes.inquire(valid ? encodeCommand(['CLIENT', 'UNBLOCK', NOBODY]) : context.command, (refusal) => {
    if (refusal !== null) return context.reply(refusal);
    if (!blocked) return context.reply(integer(0));
    return blocked.unblock(how as 'TIMEOUT' | 'ERROR').then(
      (done) => context.reply(integer(done ? 1 : 0)),
      () => context.destroy(),
    );
  });
}

const ANSWERS: Readonly<Record<string, (context: CommandContext) => Answer>> = {
  id: (context) => ({ reply: () => integer(context.client.id) }),
  setname: setName,
  getname: (context) => ({
    reply: () => (context.client.name === '' ? bulk(null, context.client.protocol) : bulk(context.client.name)),
  }),
  setinfo: setInfo,
  // The client says that it understands redirection. The proxy redirects no client, and its connections are shared.
  capa: () => ({ instead: ['CLIENT', 'ID'], reply: () => OK }),
  'no-evict': setting,
  'no-touch': setting,
  list,
  info: (context) => ({ reply: () => describeAll(context, ({ client }) => client === context.client) }),
  kill,
};

/** The subcommands, by name in the command table. */
export const CLIENT: Readonly<Record<string, (context: CommandContext) => void>> = {
  ...Object.fromEntries(Object.entries(ANSWERS).map(([name, answerOf]) => [`client|${name}`, handler(name, answerOf)])),
  'client|reply': replies,
  'client|unblock': unblock,
};
