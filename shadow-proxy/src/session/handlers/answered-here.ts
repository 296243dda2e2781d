/** Commands that the proxy answers itself: who a client is, where, and in which protocol. */
import type { Credentials } from '../../upstream/dialer.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { Login } from '../../upstream/login.js';
import { HandshakeRefused } from '../../upstream/server.js';
import { argumentsOf, errorCode, isError, text as replyText, type Reply } from '../../resp/decode.js';
import { array, bulk, encodeCommand, error, integer, map, OK, simple } from '../../resp/encode.js';
import { otherSide, type Side } from '../../route/stage.js';
import { CLIENT, isName, refusalOfName } from './client-command.js';
import type { Session } from '../session.js';
import { databaseOf, Transaction } from './transaction.js';
import { unwatch, watch } from './watch.js';

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
    const credentials: Credentials = {
      username: named ? text(session, 1) : undefined,
      password: text(session, named ? 2 : 1),
    };
    alone(session, () => void login(session, credentials, named).then(finish(session, OK), () => session.destroy()));
  });
};

/** Resolves to the server's refusal, or null. */
async function login(session: Session, credentials: Credentials, named: boolean): Promise<Buffer | null> {
  const { sequencer } = session.clients;
  const side = sequencer.router.default.keylessRule.authority;
  const args = named ? [credentials.username!, credentials.password] : [credentials.password];
  const login = new Login(credentials);
  const refusal = await sequencer.servers[side].authenticate(args);
  if (refusal !== null) {
    // Whoever guesses passwords is answered late; the client is held meanwhile.
    await sleep(session.clients.limits.loginFailed(session.socket.remoteAddress ?? ''));
    return Buffer.from(`-${refusal}\r\n`, 'latin1');
  }
  login.standing[side] = 'admitted';
  session.login = login;
  session.clients.logins.saw(credentials);
  session.checkLimits();
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
  notInTransaction(session, () => {
    const wanted = session.parser.argc > 1 ? text(session, 1) : String(session.protocol);
    if (!INTEGER.test(wanted)) return session.refuse('ERR Protocol version is not an integer or out of range');
    if (wanted !== '2' && wanted !== '3') return session.refuse('NOPROTO unsupported protocol version');
    const { credentials, name, complaint } = helloOptions(session);
    const done = (refusal: Buffer | null): void => {
      if (refusal === null && name !== null) session.name = name;
      if (refusal === null && complaint === null) {
        session.protocol = wanted === '3' ? 3 : 2;
        session.reidentify();
      }
      session.reply(refusal ?? (complaint === null ? greeting(session) : error(complaint)));
    };
    if (credentials !== null)
      alone(
        session,
        () =>
          void login(session, credentials, true)
            .then(done)
            .then(
              () => session.resume(),
              () => session.destroy(),
            ),
      );
    else if (complaint !== null) done(null);
    // Without AUTH it is refused where a password is needed.
    else session.inquire(encodeCommand(['HELLO', session.protocol]), done);
  });
};

/** HELLO's options as Redis takes them: one after the other, up to the first that is wrong. */
function helloOptions(session: Session): {
  credentials: Credentials | null;
  name: string | null;
  complaint: string | null;
} {
  const { argc } = session.parser;
  let credentials: Credentials | null = null;
  let name: string | null = null;
  for (let i = 2; i < argc; i++) {
    const option = text(session, i).toUpperCase();
    if (option === 'AUTH' && i + 2 < argc) {
      credentials = { username: text(session, i + 1), password: text(session, i + 2) };
      i += 2;
    } else if (option === 'SETNAME' && i + 1 < argc) {
      const given = text(session, ++i);
      if (!isName(given))
        return {
          credentials,
          name,
          complaint: 'ERR Client names cannot contain spaces, newlines or special characters.',
        };
      const refusal = refusalOfName(given);
      if (refusal !== null) return { credentials: null, name, complaint: refusal };
      name = given;
    } else {
      return { credentials, name, complaint: `ERR Syntax error in HELLO option '${text(session, i)}'` };
    }
  }
  return { credentials, name, complaint: null };
}

/** A number as Redis reads it: no sign but minus, no leading zeros, and no more than 64 bits (nearly). */
const INTEGER = /^(0|-?[1-9]\d{0,17})$/;

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
  const { transaction, clients } = session;
  if (transaction !== null) return transaction.queue(clients.sequencer.table.byName('select')!);
  const db = databaseOf(wanted);
  // The authority's answer changes nothing: it refuses, or is there already.
  if (db === null || db === session.db) return session.plain();
  alone(session, () => {
    const identity = { ...session.identity, db };
    const { lanes, router } = clients.sequencer;
    lanes[router.default.keylessRule.authority].open(identity).then(
      () => {
        session.db = db;
        session.reidentify();
        finish(session, OK)(null);
      },
      (problem: Error) => {
        if (!(problem instanceof HandshakeRefused)) return session.destroy();
        session.replyRefused(problem);
        session.resume();
      },
    );
  });
};

const reset: Handler = (session) => {
  if (session.parser.argc !== 1) return arity(session);
  alone(session, () => {
    session.transaction = null;
    session.watch?.end();
    session.subscriptions?.close();
    session.subscriptions = null;
    session.db = 0;
    session.protocol = 2;
    session.name = '';
    session.login = new Login(undefined);
    session.admit();
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
  if (session.parser.argc !== 1) {
    session.transaction = null;
    session.watch?.end();
    return session.reply(
      error("EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command"),
    );
  }
  if (session.transaction === null) return session.reply(error('ERR EXEC without MULTI'));
  session.transaction.exec();
};

const discard: Handler = (session) => {
  if (session.parser.argc !== 1) return arity(session);
  if (session.transaction === null) return session.reply(error('ERR DISCARD without MULTI'));
  session.transaction = null;
  session.watch?.end();
  session.reply(OK);
};

/**
 * SCRIPT KILL, FUNCTION KILL: the lane waits for the script that is to be ended. The server says whether this user may.
 */
const kill: Handler = (session) => {
  const { servers, router } = session.clients.sequencer;
  const { authority } = router.default.keylessRule;
  const command = argumentsOf(session.command);
  const ask = async (side: Side): Promise<Reply> => servers[side].askAs(session.credentials, ...command);
  notInTransaction(session, () =>
    alone(session, () => {
      const asked = ask(authority).then((reply) =>
        router.oneAuthority || errorCode(reply) !== 'NOTBUSY' ? reply : ask(otherSide(authority)),
      );
      asked.then(
        (reply) => finish(session, simple(replyText(reply)))(isError(reply) ? error(replyText(reply)) : null),
        (problem) =>
          problem instanceof HandshakeRefused ? finish(session, OK)(error(problem.reply)) : session.destroy(),
      );
    }),
  );
};

/** What follows in an HTTP request could be commands. Redis closes the connection without a word, too. */
const http: Handler = (session) => session.destroy();

/** Answers the command at hand. A client that has to log in gets no transaction. */
export function answerLocally(session: Session, name: string): void {
  const handler = LOCAL[name];
  if (session.credentials !== undefined || !(handler === multi || handler === exec || handler === discard))
    return handler(session);
  const { side, sequencer } = session.clients;
  if (session.login.standing[side] === 'unknown') {
    session.awaitLane(sequencer.lanes[side].admit(session.login));
  } else if (!session.mustLogIn) handler(session);
  else session.reply(error(handler === exec ? `EXECABORT Transaction discarded because of: ${NOAUTH}` : NOAUTH));
}

const NOAUTH = 'NOAUTH Authentication required.';

export const LOCAL: Readonly<Record<string, Handler>> = {
  auth,
  hello,
  select,
  reset,
  quit,
  multi,
  exec,
  discard,
  watch,
  unwatch,
  'script|kill': kill,
  'function|kill': kill,
  post: http,
  'host:': http,
  ...CLIENT,
};
