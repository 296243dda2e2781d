/**
 * CLIENT: the proxy answers of its own clients. The authority is asked first, whether this client's user may ask: with
 * the command as it came where that changes nothing there, otherwise with a harmless one of the same permission. What
 * it refuses, it refuses in its own words.
 */
import { bulk, encodeCommand, error, integer, OK, type Argument } from '../../resp/encode.js';
import type { Session } from '../session.js';

interface Answer {
  /** What is asked in place of the command itself. */
  readonly instead?: readonly Argument[];
  reply(): Buffer;
  after?(): void;
}

const text = (session: Session, index: number): string => session.argument(index).toString('utf8');
const option = (session: Session, index: number): string => text(session, index).toUpperCase();

/** Whether CLIENT SETNAME takes it: printable, without spaces. */
export const isName = (name: string): boolean => /^[!-~]*$/.test(name);
/** What another proxy calls its connections: this one is not a server. */
const OF_A_PROXY = /^shadow-proxy(-[a-z]+)?:/;
/** The refusal of a client by its name; null where there is none. */
export const refusalOfName = (name: string): string | null =>
  OF_A_PROXY.test(name)
    ? 'ERR this is a shadow-proxy, not a server: name the servers themselves as source and target'
    : null;
/** The highest client id: of no client. */
const NOBODY = '9223372036854775807';

const setName = (session: Session): Answer => {
  const { argc } = session.parser;
  if (argc !== 3 || !isName(text(session, 2))) return { reply: () => OK };
  const name = text(session, 2);
  const refusal = refusalOfName(name);
  if (refusal !== null) return { reply: () => error(refusal) };
  return {
    instead: ['CLIENT', 'SETNAME', session.clients.sequencer.servers.source.name],
    reply: () => {
      session.name = name;
      return OK;
    },
  };
};

/** A setting of the server's side of a connection, which is not the client's. */
const setting = (session: Session): Answer => {
  const valid = session.parser.argc === 3 && ['ON', 'OFF'].includes(option(session, 2));
  return { instead: valid ? ['CLIENT', text(session, 1), 'OFF'] : undefined, reply: () => OK };
};

/** What CLIENT LIST says it is: a subscriber, blocked, or neither. */
const flagOf = (session: Session): string => (isSubscriber(session) ? 'P' : session.blocked?.isSent ? 'b' : 'N');

const describe = (session: Session): string => {
  const { remoteAddress, remotePort, localAddress, localPort } = session.socket;
  const [age, idle] = [session.connectedAt, session.activeAt].map((at) => Math.floor((performance.now() - at) / 1000));
  return (
    `id=${session.id} addr=${remoteAddress}:${remotePort} laddr=${localAddress}:${localPort} fd=0 name=${session.name} age=${age} idle=${idle} ` +
    `flags=${flagOf(session)} db=${session.db} ${subscriptionsOf(session)} multi=${session.transaction === null ? -1 : 0} user=${session.credentials?.username ?? 'default'} resp=${session.protocol}\n`
  );
};

const isSubscriber = ({ subscriptions }: Session): boolean => subscriptions !== null && subscriptions.total > 0;
const subscriptionsOf = ({ subscriptions }: Session): string =>
  `sub=${subscriptions?.count('channel') ?? 0} psub=${subscriptions?.count('pattern') ?? 0} ssub=${subscriptions?.count('shard') ?? 0}`;

/** Whether a client is of a TYPE. */
const isOfType = (each: Session, type: string): boolean =>
  type.toLowerCase() === (isSubscriber(each) ? 'pubsub' : 'normal');

const list = (session: Session): Answer => {
  const { argc } = session.parser;
  let wanted = (_each: Session): boolean => true;
  if (argc > 3 && option(session, 2) === 'ID') {
    const ids = new Set<number>();
    for (let i = 3; i < argc; i++) ids.add(Number(text(session, i)));
    wanted = ({ id }) => ids.has(id);
  } else if (argc === 4) {
    const type = option(session, 3);
    wanted = (each) => isOfType(each, type);
  }
  return { reply: () => bulk([...session.clients.sessions.values()].filter(wanted).map(describe).join('')) };
};

const address = ({ socket }: Session): string => `${socket.remoteAddress}:${socket.remotePort}`;
const SYNTAX = 'ERR syntax error';

/** CLIENT KILL of clients of the proxy: `addr`, or filters. */
const kill = (session: Session): Answer => {
  const instead = ['CLIENT', 'KILL', 'ID', NOBODY];
  const { argc } = session.parser;
  const old = argc === 3 ? text(session, 2) : null;
  const filters = old === null ? filtersOf(session) : null;
  let killed: Session[] = [];
  return {
    // Too few arguments: the server says so.
    instead: argc > 2 ? instead : undefined,
    reply: () => {
      if (typeof filters === 'string') return error(filters);
      const all = [...session.clients.sessions.values()];
      killed = all.filter((each) => (filters === null ? address(each) === old : filters(each)));
      if (filters === null) return killed.length === 0 ? error('ERR No such client') : OK;
      return integer(killed.length);
    },
    after: () => {
      for (const victim of killed) {
        if (victim === session) session.end();
        else victim.destroy();
      }
    },
  };
};

/** Who is meant by the filters of CLIENT KILL, or what is wrong with them, as Redis says it. */
function filtersOf(session: Session): string | ((each: Session) => boolean) {
  const { argc } = session.parser;
  if (argc % 2 !== 0) return SYNTAX;
  const filters: ((each: Session) => boolean)[] = [];
  let skipMe = true;
  for (let i = 2; i < argc; i += 2) {
    const value = text(session, i + 1);
    switch (option(session, i)) {
      case 'ID':
        if (!/^[1-9]\d*$/.test(value)) return 'ERR client-id should be greater than 0';
        filters.push(({ id }) => id === Number(value));
        break;
      case 'ADDR':
        filters.push((each) => address(each) === value);
        break;
      case 'LADDR':
        filters.push(({ socket }) => `${socket.localAddress}:${socket.localPort}` === value);
        break;
      case 'USER':
        filters.push(({ credentials }) => (credentials?.username ?? 'default') === value);
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
  return (each) => filters.every((filter) => filter(each)) && (each !== session || !skipMe);
}

/** What a transaction may hold: answered as it is queued. */
const QUEUEABLE = new Set(['id', 'setname', 'getname', 'setinfo', 'no-evict', 'no-touch', 'list', 'info']);

const handler =
  (name: string, answerOf: (session: Session) => Answer) =>
  (session: Session): void => {
    if (session.transaction !== null && !QUEUEABLE.has(name)) return notQueued(session, name);
    const { instead, reply, after } = answerOf(session);
    session.inquire(instead === undefined ? session.command : encodeCommand(instead), (refusal) => {
      const { transaction } = session;
      if (refusal !== null) {
        transaction?.spoil();
        session.reply(refusal);
      } else if (transaction !== null) {
        transaction.queueReply(reply());
      } else {
        session.reply(reply());
        after?.();
      }
    });
  };

const notQueued = (session: Session, name: string): void =>
  session.refuse(`ERR shadow-proxy: CLIENT ${name.toUpperCase()} inside MULTI is not supported`);

/** CLIENT REPLY ON|OFF|SKIP: only ON is answered. */
function replies(session: Session): void {
  if (session.transaction !== null) return notQueued(session, 'reply');
  const mode = session.parser.argc === 3 ? option(session, 2) : '';
  const valid = mode === 'ON' || mode === 'OFF' || mode === 'SKIP';
  session.inquire(valid ? encodeCommand(['CLIENT', 'REPLY', 'ON']) : session.command, (refusal) => {
    if (refusal !== null) return session.reply(refusal);
    if (mode === 'SKIP' && session.replies === 'off') return;
    session.replies = mode === 'ON' ? 'on' : mode === 'OFF' ? 'off' : 'skip';
    if (mode === 'ON') session.reply(OK);
  });
}

/** CLIENT UNBLOCK id [TIMEOUT|ERROR] of a client of the proxy. */
function unblock(session: Session): void {
  if (session.transaction !== null) return notQueued(session, 'unblock');
  const { argc } = session.parser;
  const how = argc === 4 ? option(session, 3) : 'TIMEOUT';
  const valid =
    (argc === 3 || argc === 4) && /^-?\d{1,18}$/.test(text(session, 2)) && (how === 'TIMEOUT' || how === 'ERROR');
  const blocked = valid ? session.clients.sessions.get(Number(text(session, 2)))?.blocked : undefined;
  session.inquire(valid ? encodeCommand(['CLIENT', 'UNBLOCK', NOBODY]) : session.command, (refusal) => {
    if (refusal !== null) return session.reply(refusal);
    if (!blocked) return session.reply(integer(0));
    session.hold();
    void blocked.unblock(how as 'TIMEOUT' | 'ERROR').then(
      (done) => {
        session.reply(integer(done ? 1 : 0));
        session.resume();
      },
      () => session.destroy(),
    );
  });
}

const ANSWERS: Readonly<Record<string, (session: Session) => Answer>> = {
  id: (session) => ({ reply: () => integer(session.id) }),
  setname: setName,
  getname: (session) => ({ reply: () => (session.name === '' ? bulk(null, session.protocol) : bulk(session.name)) }),
  setinfo: () => ({ reply: () => OK }),
  'no-evict': setting,
  'no-touch': setting,
  list,
  info: (session) => ({ reply: () => bulk(describe(session)) }),
  kill,
};

/** By name in the command table. */
export const CLIENT: Readonly<Record<string, (session: Session) => void>> = {
  ...Object.fromEntries(Object.entries(ANSWERS).map(([name, answerOf]) => [`client|${name}`, handler(name, answerOf)])),
  'client|reply': replies,
  'client|unblock': unblock,
};
