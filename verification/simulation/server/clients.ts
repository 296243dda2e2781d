/** Commands of connections: HELLO, SELECT, CLIENT, RESET and the like. */
import { authenticate } from './acl.js';
import { integerOf, needCount, needInteger } from './numbers.js';
import { DISABLED, refuseInCluster } from './cluster.js';
import { lower, Options } from './options.js';
import {
  bulk,
  EMPTY_ARRAY,
  integer,
  named,
  nil,
  NO_DATABASE,
  NOT_INTEGER,
  OK,
  Refusal,
  simple,
  SYNTAX,
  verbatim,
  type Protocol,
} from './reply.js';
import type { Client, Run, State } from './state.js';
import { container, unknownSubcommand } from './subcommand.js';

/** -1 for a client that does not track; 0 for one that gets the messages itself. */
const redirectOf = (client: Client): number => (client.server.tracking.has(client) ? 0 : -1);

export const VERSIONS = { redis: '7.0.15', keydb: '6.3.4' };

const hello: Run = (client, args) => {
  const { server } = client;
  let version = 0;
  if (args.length > 1) {
    version = integerOf(args[1]);
    if (Number.isNaN(version)) throw new Refusal('ERR Protocol version is not an integer or out of range');
    if (version < 2 || version > 3) throw new Refusal('NOPROTO unsupported protocol version');
  }
  const options = new Options(args, 2);
  while (options.more) {
    const given = options.next();
    const word = lower(given);
    if (word === 'auth' && options.left >= 2) authenticate(client, options.next(), options.next());
    else if (word === 'setname' && options.more) setName(client, options.next());
    else throw new Refusal(`ERR Syntax error in HELLO option '${given}'`);
  }
  if (client.user === null)
    throw new Refusal(
      'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time',
    );
  if (version !== 0) client.protocol = version as Protocol;
  return named(
    [
      ['server', bulk('redis')],
      ['version', bulk(VERSIONS[server.engine])],
      ['proto', integer(client.protocol)],
      ['id', integer(client.id)],
      ['mode', bulk(server.config.get('cluster-enabled') === 'yes' ? 'cluster' : 'standalone')],
      ['role', bulk(server.replicaOf === null ? 'master' : 'replica')],
      ['modules', EMPTY_ARRAY],
    ],
    client.protocol,
  );
};

function setName(client: Client, name: string): void {
  for (let i = 0; i < name.length; i++)
    if (name.charCodeAt(i) < 33 || name.charCodeAt(i) > 126)
      throw new Refusal('ERR Client names cannot contain spaces, newlines or special characters.');
  client.name = name;
}

/** Which kind CLIENT LIST TYPE and CLIENT KILL TYPE count a client to. */
const typeOf = (client: Client): string => (client.subscribed > 0 && client.protocol === 2 ? 'pubsub' : 'normal');

function needType(given: string): string {
  const type = lower(given) === 'slave' ? 'replica' : lower(given);
  if (!['normal', 'master', 'replica', 'pubsub'].includes(type))
    throw new Refusal(`ERR Unknown client type '${given}'`);
  return type;
}

/** A client's line of CLIENT LIST. */
function describe(client: Client): string {
  const { server } = client;
  const isRedis = server.engine === 'redis';
  const flags =
    (client.subscribed > 0 ? 'P' : '') +
    (client.multi === null ? '' : 'x') +
    (client.blocked === null ? '' : 'b') +
    (server.tracking.has(client) ? 'tB' : '') +
    (client.dirty ? 'd' : '') +
    (client.closing ? 'c' : '') +
    (client.readsReplica ? 'r' : '') +
    (client.noEvict ? 'e' : '');
  const seconds = (since: number): number => Math.max(0, Math.floor(server.now / 1000) - Math.floor(since / 1000));
  const memory = isRedis
    ? 'qbuf=0 qbuf-free=0 argv-mem=10 multi-mem=0 rbs=1024 rbp=0'
    : 'qbuf=0 qbuf-free=0 argv-mem=10';
  const command = isRedis ? client.lastCommand : client.lastCommand.split('|', 1)[0];
  return (
    `id=${client.id} addr=${client.address} laddr=${server.config.get('address')!} fd=8 name=${client.name}` +
    ` age=${seconds(client.since)} idle=${seconds(client.lastSeen)} flags=${flags || 'N'} db=${client.database.id}` +
    ` sub=${client.channels.size} psub=${client.patterns.size}${isRedis ? ' ssub=0' : ''}` +
    ` multi=${client.multi === null ? -1 : client.multi.length} ${memory} obl=0 oll=0 omem=0 tot-mem=22298` +
    ` events=r cmd=${command} user=${client.user?.name ?? 'default'} redir=${redirectOf(client)}${isRedis ? ` resp=${client.protocol}` : ''}\n`
  );
}

function list({ server, protocol }: Client, args: readonly string[]): string {
  let shown = [...server.clients.values()];
  if (args.length === 4 && lower(args[2]) === 'type') {
    const type = needType(args[3]);
    shown = shown.filter((client) => typeOf(client) === type);
  } else if (args.length > 3 && lower(args[2]) === 'id') {
    shown = args.slice(3).flatMap((text) => {
      const client = server.clients.get(needInteger(text, new Refusal('ERR Invalid client ID')));
      return client === undefined ? [] : [client];
    });
  } else if (args.length !== 2) throw SYNTAX;
  return verbatim(shown.map(describe).join(''), protocol);
}

function kill(client: Client, args: readonly string[]): string {
  const { server } = client;
  const tests: ((other: Client) => boolean)[] = [];
  let skipMe = args.length > 3;
  if (args.length === 3) tests.push((other) => other.address === args[2]);
  const options = new Options(args, args.length === 3 ? 3 : 2);
  while (options.more) {
    const word = options.word();
    if (!options.more) throw SYNTAX;
    const value = options.next();
    if (word === 'id') {
      const refusal = new Refusal('ERR client-id should be greater than 0');
      const id = server.engine === 'redis' ? needCount(value, refusal) : needInteger(value);
      // KeyDB takes 0 for no condition.
      if (id !== 0) tests.push((other) => other.id === id);
    } else if (word === 'type') {
      const type = needType(value);
      tests.push((other) => typeOf(other) === type);
    } else if (word === 'addr') tests.push((other) => other.address === value);
    else if (word === 'laddr') tests.push(() => server.config.get('address') === value);
    else if (word === 'user') {
      const user = server.users.get(value);
      if (user === undefined) throw new Refusal(`ERR No such user '${value}'`);
      tests.push((other) => other.user === user);
    } else if (word === 'skipme' && ['yes', 'no'].includes(lower(value))) skipMe = lower(value) === 'yes';
    else throw SYNTAX;
  }
  let count = 0;
  for (const other of [...server.clients.values()]) {
    if ((skipMe && other === client) || !tests.every((test) => test(other))) continue;
    count++;
    if (other === client) client.closing = true;
    else other.close();
  }
  if (args.length > 3) return integer(count);
  if (count === 0) throw new Refusal('ERR No such client');
  return OK;
}

function unblock(server: State, args: readonly string[]): string {
  if (args.length > 4) throw unknownSubcommand(server, args);
  const how = lower(args[3] ?? 'timeout');
  if (how !== 'timeout' && how !== 'error') throw new Refusal('ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR');
  const client = server.clients.get(needInteger(args[2]));
  if (client === undefined || client.blocked === null) return integer(0);
  client.unblock(how === 'error' ? '-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n' : client.blocked.atTimeout);
  return integer(1);
}

const SWITCH = (word: string): boolean => {
  if (!['on', 'off'].includes(lower(word))) throw SYNTAX;
  return lower(word) === 'on';
};

const reply: Run = (client, args) => {
  const word = lower(args[2]);
  if (word === 'on') client.replies = 'on';
  else if (word === 'off') client.replies = 'off';
  else if (word === 'skip') client.replies = client.replies === 'off' ? 'off' : 'skip next';
  else throw SYNTAX;
  return word === 'on' ? OK : '';
};

/** Forgets all that a client has said since it connected. */
function reset(client: Client): void {
  client.endTransaction();
  client.server.tracking.stop(client);
  client.channels.clear();
  client.patterns.clear();
  client.database = client.server.databases[0];
  client.protocol = 2;
  client.name = '';
  client.replies = 'on';
  client.asking = client.readsReplica = false;
  const user = client.server.users.get('default')!;
  client.user = user.on && user.nopass ? user : null;
}

export const CLIENT_COMMANDS: Readonly<Record<string, Run>> = {
  hello,
  ping({ protocol, subscribed }, args) {
    if (args.length > 2) throw new Refusal("ERR wrong number of arguments for 'ping' command");
    if (subscribed > 0 && protocol === 2) return `*2\r\n${bulk('pong')}${bulk(args[1] ?? '')}`;
    return args.length === 1 ? simple('PONG') : bulk(args[1]);
  },
  echo: (_client, [, text]) => bulk(text),
  select(client, args) {
    const index = integerOf(args[1]);
    if (Number.isNaN(index) || Math.abs(index) > 2 ** 31 - 1) throw NOT_INTEGER;
    if (index !== 0) refuseInCluster(client.server, 'SELECT is');
    const database = client.server.databases[index];
    if (database === undefined) throw NO_DATABASE;
    client.database = database;
    return OK;
  },
  quit(client) {
    client.closing = true;
    return OK;
  },
  reset(client) {
    reset(client);
    return simple('RESET');
  },
  client: container({
    id: ({ id }) => integer(id),
    info: (client) => verbatim(describe(client), client.protocol),
    list,
    kill,
    reply,
    unblock: ({ server }, args) => unblock(server, args),
    setname(client, args) {
      setName(client, args[2]);
      return OK;
    },
    getname: ({ name, protocol }) => (name === '' ? nil(protocol) : bulk(name)),
    'no-evict'(client, args) {
      client.noEvict = SWITCH(args[2]);
      return OK;
    },
    tracking(client, args) {
      const { tracking } = client.server;
      if (!SWITCH(args[2])) tracking.stop(client);
      else if (client.protocol === 2 || args.length !== 4 || lower(args[3]) !== 'bcast')
        throw new Refusal('ERR the model tracks keys with BCAST alone, for RESP3');
      else tracking.start(client);
      return OK;
    },
    getredir: (client) => integer(redirectOf(client)),
  }),
  wait(client, args) {
    const count = needInteger(args[1]);
    const ms = needInteger(args[2], new Refusal('ERR timeout is not an integer or out of range'));
    if (ms < 0) throw new Refusal('ERR timeout is negative');
    if (client.server.replicaOf !== null)
      throw new Refusal(
        'ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.',
      );
    if (count <= 0 || client.mayNotBlock) return integer(0);
    client.block({ type: 'list', keys: [], serve: () => null, atTimeout: integer(0) }, ms);
    return '';
  },
  asking(client) {
    if (client.server.config.get('cluster-enabled') !== 'yes') throw DISABLED;
    client.asking = true;
    return OK;
  },
  readonly: (client) => readsReplica(client, true),
  readwrite: (client) => readsReplica(client, false),
};

function readsReplica(client: Client, value: boolean): string {
  if (client.server.config.get('cluster-enabled') !== 'yes') throw DISABLED;
  client.readsReplica = value;
  return OK;
}
