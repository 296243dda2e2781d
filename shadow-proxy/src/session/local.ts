/** Commands that the proxy answers itself: what a client says of its own connection. */
import type { Credentials } from '../lane/dialer.js';
import { HandshakeRefused } from '../lane/server.js';
import { bulk, error, integer, map, OK, simple, array } from '../resp/encode.js';
import type { Session } from './session.js';
import { Transaction } from './transaction.js';

type Handler = (session: Session) => void;

const text = (session: Session, index: number): string => session.argument(index).toString('utf8');
const arity = (session: Session): void => {
  const name = text(session, 0).toLowerCase();
  session.refuse(`ERR wrong number of arguments for '${name}' command`);
};
const syntax = (session: Session): void => session.refuse('ERR syntax error');

/** Runs `then` once all earlier commands of the client are answered; it must end with `session.resume()`. */
const alone = (session: Session, then: () => void): void => session.whenIdle(then);

function notInTransaction(session: Session, then: () => void): void {
  if (session.transaction === null) then();
  else session.refuse(`ERR shadow-proxy: ${text(session, 0).toUpperCase()} inside MULTI is not supported`);
}

// ── who ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const auth: Handler = (session) => {
  if (session.parser.argc < 2) return arity(session);
  if (session.parser.argc > 3) return syntax(session);
  notInTransaction(session, () => {
    const named = session.parser.argc === 3;
    const credentials: Credentials = { username: named ? text(session, 1) : undefined, password: text(session, named ? 2 : 1) };
    alone(session, () => void login(session, credentials, named).then(finish(session, OK)));
  });
};

/** Resolves to the server's refusal, or null. */
async function login(session: Session, credentials: Credentials, named: boolean): Promise<Buffer | null> {
  const { sequencer } = session.clients;
  const side = sequencer.router.default.keylessRule.authority;
  const args = named ? [credentials.username!, credentials.password] : [credentials.password];
  const refusal = await sequencer.servers[side].authenticate(args);
  if (refusal !== null) return Buffer.from(`-${refusal}\r\n`, 'latin1');
  session.credentials = credentials;
  session.reidentify();
  return null;
}

/** Answers with the refusal or with `reply`, and goes on; a server that cannot be asked ends the client. */
const finish =
  (session: Session, reply: Buffer | (() => Buffer)) =>
  (refusal: Buffer | null): void => {
    session.reply(refusal ?? (typeof reply === 'function' ? reply() : reply));
    session.resume();
  };

const hello: Handler = (session) => {
  const { parser } = session;
  notInTransaction(session, () => {
    let protocol = session.protocol;
    let credentials: Credentials | null = null;
    let name: string | null = null;
    if (parser.argc > 1) {
      const wanted = text(session, 1);
      if (!/^-?\d+$/.test(wanted)) return session.refuse('ERR Protocol version is not an integer or out of range');
      if (wanted !== '2' && wanted !== '3') return session.refuse('NOPROTO unsupported protocol version');
      protocol = wanted === '3' ? 3 : 2;
    }
    for (let i = 2; i < parser.argc; i++) {
      const option = text(session, i).toUpperCase();
      if (option === 'AUTH' && i + 2 < parser.argc) {
        credentials = { username: text(session, i + 1), password: text(session, i + 2) };
        i += 2;
      } else if (option === 'SETNAME' && i + 1 < parser.argc) {
        name = text(session, ++i);
        if (!isName(name)) return session.refuse(BAD_NAME);
      } else {
        return session.refuse(`ERR Syntax error in HELLO option '${text(session, i)}'`);
      }
    }
    alone(session, () => {
      void (async () => {
        const refusal = credentials === null ? await unauthenticated(session) : await login(session, credentials, true);
        if (refusal === null) {
          session.protocol = protocol;
          if (name !== null) session.name = name;
          session.reidentify();
        }
        finish(session, () => greeting(session))(refusal);
      })().catch(() => session.destroy());
    });
  });
};

/** HELLO without AUTH is refused where a password is required. */
async function unauthenticated(session: Session): Promise<Buffer | null> {
  const { lanes, router } = session.clients.sequencer;
  const lane = lanes[router.default.keylessRule.authority];
  const needs = session.credentials === undefined && (await lane.server.requiresPassword());
  return needs
    ? error('NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time')
    : null;
}

function greeting(session: Session): Buffer {
  const { sequencer } = session.clients;
  const server = sequencer.servers[sequencer.router.default.keylessRule.authority];
  const fields: [string, Buffer][] = [
    ['server', bulk('redis')],
    ['version', bulk(server.version)],
    ['proto', integer(session.protocol)],
    ['id', integer(session.id)],
    ['mode', bulk('standalone')],
    ['role', bulk('master')],
    ['modules', array([])],
  ];
  return map(
    fields.flatMap(([key, value]) => [bulk(key), value]),
    session.protocol,
  );
}

// ── where ───────────────────────────────────────────────────────────────────────────────────────────────────────

const select: Handler = (session) => {
  if (session.parser.argc !== 2) return arity(session);
  const wanted = text(session, 1);
  if (!/^\d{1,9}$/.test(wanted)) return session.refuse('ERR invalid DB index');
  notInTransaction(session, () => {
    const db = Number(wanted);
    if (db === session.db) return session.reply(OK);
    alone(session, () => {
      const identity = { db, protocol: session.protocol, credentials: session.credentials };
      const { lanes, router } = session.clients.sequencer;
      lanes[router.default.keylessRule.authority].open(identity).then(
        () => {
          session.db = db;
          session.reidentify();
          finish(session, OK)(null);
        },
        (problem: Error) => {
          if (problem instanceof HandshakeRefused) finish(session, OK)(Buffer.from(`-${problem.reply}\r\n`, 'latin1'));
          else session.destroy();
        },
      );
    });
  });
};

const reset: Handler = (session) => {
  alone(session, () => {
    session.transaction = null;
    session.db = 0;
    session.protocol = 2;
    session.name = '';
    session.credentials = undefined;
    session.replies = 'on';
    session.reidentify();
    finish(session, simple('RESET'))(null);
  });
};

const quit: Handler = (session) => {
  session.reply(OK);
  session.end();
};

// ── transactions ────────────────────────────────────────────────────────────────────────────────────────────────

const multi: Handler = (session) => {
  if (session.parser.argc !== 1) return arity(session);
  if (session.transaction !== null) return session.reply(error('ERR MULTI calls can not be nested'));
  session.transaction = new Transaction(session);
  session.reply(OK);
};

const exec: Handler = (session) => {
  if (session.parser.argc !== 1) return arity(session);
  if (session.transaction === null) return session.reply(error('ERR EXEC without MULTI'));
  session.transaction.exec();
};

const discard: Handler = (session) => {
  if (session.parser.argc !== 1) return arity(session);
  if (session.transaction === null) return session.reply(error('ERR DISCARD without MULTI'));
  session.transaction = null;
  session.reply(OK);
};

// ── CLIENT ──────────────────────────────────────────────────────────────────────────────────────────────────────

const BAD_NAME = 'ERR Client names cannot contain spaces, newlines or special characters.';
const isName = (name: string): boolean => /^[!-~]*$/.test(name);

const setName: Handler = (session) => {
  if (session.parser.argc !== 3) return arity(session);
  const name = text(session, 2);
  if (!isName(name)) return session.refuse(BAD_NAME);
  session.name = name;
  session.reply(OK);
};

const getName: Handler = (session) => session.reply(session.name === '' ? bulk(null, session.protocol) : bulk(session.name));

const describe = (session: Session): string => {
  const { remoteAddress, remotePort, localAddress, localPort } = session.socket;
  const age = Math.floor((Date.now() - session.since) / 1000);
  return (
    `id=${session.id} addr=${remoteAddress}:${remotePort} laddr=${localAddress}:${localPort} fd=0 name=${session.name} age=${age} idle=0 ` +
    `flags=N db=${session.db} sub=0 psub=0 ssub=0 multi=${session.transaction === null ? -1 : 0} user=${session.credentials?.username ?? 'default'} resp=${session.protocol}`
  );
};

const list: Handler = (session) => {
  let sessions = [...session.clients.sessions.values()];
  if (session.parser.argc > 2) {
    const option = text(session, 2).toUpperCase();
    if (option === 'ID' && session.parser.argc > 3) {
      const ids = new Set<number>();
      for (let i = 3; i < session.parser.argc; i++) ids.add(Number(text(session, i)));
      sessions = sessions.filter(({ id }) => ids.has(id));
    } else if (option === 'TYPE' && session.parser.argc === 4) {
      if (text(session, 3).toLowerCase() !== 'normal') sessions = [];
    } else return syntax(session);
  }
  session.reply(bulk(sessions.map((each) => `${describe(each)}\n`).join('')));
};

/** CLIENT KILL of clients of the proxy: `addr`, or `ID`, `ADDR`, `LADDR`, `USER`, `TYPE`, `SKIPME` filters. */
const kill: Handler = (session) => {
  const { parser } = session;
  const address = (each: Session): string => `${each.socket.remoteAddress}:${each.socket.remotePort}`;
  if (parser.argc === 3) {
    const victim = [...session.clients.sessions.values()].find((each) => address(each) === text(session, 2));
    if (victim === undefined) return session.refuse('ERR No such client');
    session.reply(OK);
    if (victim === session) session.end();
    else victim.destroy();
    return;
  }
  if (parser.argc < 4 || parser.argc % 2 !== 0) return syntax(session);
  let skipMe = true;
  let victims = [...session.clients.sessions.values()];
  for (let i = 2; i < parser.argc; i += 2) {
    const value = text(session, i + 1);
    switch (text(session, i).toUpperCase()) {
      case 'ID':
        victims = victims.filter(({ id }) => id === Number(value));
        break;
      case 'ADDR':
        victims = victims.filter((each) => address(each) === value);
        break;
      case 'LADDR':
        victims = victims.filter(({ socket }) => `${socket.localAddress}:${socket.localPort}` === value);
        break;
      case 'USER':
        victims = victims.filter(({ credentials }) => (credentials?.username ?? 'default') === value);
        break;
      case 'TYPE':
        if (value.toLowerCase() !== 'normal') victims = [];
        break;
      case 'SKIPME':
        skipMe = value.toLowerCase() !== 'no';
        break;
      default:
        return syntax(session);
    }
  }
  const killed = victims.filter((each) => each !== session || !skipMe);
  session.reply(integer(killed.length));
  for (const victim of killed) {
    if (victim === session) session.end();
    else victim.destroy();
  }
};

/** CLIENT REPLY ON|OFF|SKIP: only ON is answered. */
const replies: Handler = (session) => {
  if (session.parser.argc !== 3) return arity(session);
  switch (text(session, 2).toUpperCase()) {
    case 'ON':
      session.replies = 'on';
      return session.reply(OK);
    case 'OFF':
      session.replies = 'off';
      return;
    case 'SKIP':
      if (session.replies === 'on') session.replies = 'skip';
      return;
    default:
      return syntax(session);
  }
};

/** What changes nothing that the proxy's servers see. */
const accepted: Handler = (session) => session.reply(OK);

export const LOCAL: Readonly<Record<string, Handler>> = {
  auth,
  hello,
  select,
  reset,
  quit,
  multi,
  exec,
  discard,
  'client|id': (session) => session.reply(integer(session.id)),
  'client|setname': setName,
  'client|getname': getName,
  'client|setinfo': accepted,
  'client|no-evict': accepted,
  'client|no-touch': accepted,
  'client|list': list,
  'client|info': (session) => session.reply(bulk(`${describe(session)}\n`)),
  'client|kill': kill,
  'client|reply': replies,
  ping: (session) => session.plain(),
  echo: (session) => session.plain(),
  'client|trackinginfo': (session) =>
    session.reply(map([bulk('flags'), array([bulk('off')]), bulk('redirect'), integer(-1), bulk('prefixes'), array([])], session.protocol)),
  'client|unblock': (session) => session.reply(integer(0)),
  'client|getredir': (session) => session.reply(integer(-1)),
};
