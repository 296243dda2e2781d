/** Commands that the proxy answers itself: login, database, protocol. */
import { sleep } from '../../io/timers.js';
import type { Credentials } from '../../upstream/dialer.js';
import { Login } from '../../upstream/login.js';
import type { Server } from '../../upstream/server.js';
import { argumentsOf, errorCode, isError, text as replyText, type Reply } from '../../resp/decode.js';
import { array, bulk, encodeCommand, error, integer, map, OK, simple } from '../../resp/encode.js';
import { otherSide, type Side } from '../../route/stage.js';
import { isSince } from '../../upstream/identity.js';
import { CLIENT, isName, refusalOfName } from './client-command.js';
import { answerCluster, ANSWERED_BY_FACE } from './cluster.js';
import type { CommandContext } from '../context.js';
import { refuseNested } from './nested.js';
import { plain } from './plain.js';
import { databaseOf, refusalOfDatabases } from './databases.js';
import { Transaction } from './transaction.js';
import { unwatch, watch } from './watch.js';

type Handler = (context: CommandContext) => void;

const text = (context: CommandContext, index: number): string => context.argument(index).toString('utf8');
const arity = (context: CommandContext): void => {
  const name = text(context, 0).toLowerCase();
  context.refuse(`ERR wrong number of arguments for '${name}' command`);
};
const syntax = (context: CommandContext): void => context.refuse('ERR syntax error');

/** Runs `then` once all earlier commands of the client are answered; it must end with `context.flow.resume()`. */
const alone = (context: CommandContext, then: () => void): void => context.flow.whenIdle(then);

function notInTransaction(context: CommandContext, then: () => void): void {
  if (context.client.transaction === null) then();
  else context.refuse(`ERR shadow-proxy: ${text(context, 0).toUpperCase()} inside MULTI is not supported`);
}

// ── who ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const auth: Handler = (context) => {
  if (context.parser.argc < 2) return arity(context);
  if (context.parser.argc > 3) return syntax(context);
  notInTransaction(context, () => {
    const named = context.parser.argc === 3;
    const credentials: Credentials = {
      username: named ? text(context, 1) : undefined,
      password: text(context, named ? 2 : 1),
    };
    alone(context, () => void login(context, credentials, named).then(finish(context, OK)).catch(fail(context)));
  });
};

/** Resolves to the server's refusal, or null. */
async function login(context: CommandContext, credentials: Credentials, named: boolean): Promise<Buffer | null> {
  const { sequencer } = context;
  const side = sequencer.router.default.position.keylessRule.authority;
  const args = named ? [credentials.username!, credentials.password] : [credentials.password];
  const login = new Login(credentials);
  const refusal = await sequencer.servers[side].authenticate(args);
  const { failedLogins } = context.clients.limits;
  const [address, user] = [context.client.host, credentials.username ?? 'default'];
  if (refusal !== null) {
    // A client that guesses passwords gets its answers late, and is held meanwhile.
    await sleep(failedLogins.failed(address, user));
    return Buffer.from(`-${refusal}\r\n`, 'latin1');
  }
  failedLogins.succeeded(address, user);
  login.states[side] = 'admitted';
  context.clients.logins.saw(credentials);
  context.client.become({ login });
  context.checkLimits();
  return null;
}

/** Answers with a server's refusal, and resumes the client. If the server cannot be reached, the client is closed. */
const fail =
  (context: CommandContext) =>
  (problem: Error): void =>
    context.lanes.failed(problem);

/** Answers with the refusal or with `reply`, and resumes the client. */
const finish =
  (context: CommandContext, reply: Buffer | (() => Buffer)) =>
  (refusal: Buffer | null): void => {
    context.reply(refusal ?? (typeof reply === 'function' ? reply() : reply));
    context.flow.resume();
  };

const hello: Handler = (context) => {
  notInTransaction(context, () => {
    const wanted = context.parser.argc > 1 ? text(context, 1) : String(context.client.protocol);
    if (!INTEGER.test(wanted)) return context.refuse('ERR Protocol version is not an integer or out of range');
    if (wanted !== '2' && wanted !== '3') return context.refuse('NOPROTO unsupported protocol version');
    const { credentials, name, complaint } = helloOptions(context);
    // Redis before 7.2, and KeyDB, apply the password and the name before they find an error in later options.
    if (complaint !== null && isSince(defaultServer(context).traits.version, [7, 2]))
      return context.reply(error(complaint));
    const done = (refusal: Buffer | null): void => {
      if (refusal === null && name !== null) context.client.rename(name);
      if (refusal === null && complaint === null) {
        context.client.become({ protocol: wanted === '3' ? 3 : 2 });
      }
      context.reply(refusal ?? (complaint === null ? greeting(context) : error(complaint)));
    };
    if (credentials !== null)
      alone(
        context,
        () =>
          void login(context, credentials, true)
            .then(done)
            .then(() => context.flow.resume())
            .catch(fail(context)),
      );
    else if (complaint !== null) done(null);
    // Without AUTH, the server refuses this if it demands a password.
    else context.lanes.inquire(encodeCommand(['HELLO', context.client.protocol]), done);
  });
};

/** HELLO's options as Redis reads them: in order, up to the first that is wrong. */
function helloOptions(context: CommandContext): {
  credentials: Credentials | null;
  name: string | null;
  complaint: string | null;
} {
  const { argc } = context.parser;
  let credentials: Credentials | null = null;
  let name: string | null = null;
  for (let i = 2; i < argc; i++) {
    const option = text(context, i).toUpperCase();
    if (option === 'AUTH' && i + 2 < argc) {
      credentials = { username: text(context, i + 1), password: text(context, i + 2) };
      i += 2;
    } else if (option === 'SETNAME' && i + 1 < argc) {
      const given = text(context, ++i);
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
      return { credentials, name, complaint: `ERR Syntax error in HELLO option '${text(context, i)}'` };
    }
  }
  return { credentials, name, complaint: null };
}

/** An integer as Redis reads it: no sign but minus, no leading zeros, at most 18 digits. */
const INTEGER = /^(0|-?[1-9]\d{0,17})$/;

/** The server that answers commands without keys. */
function defaultServer({ clients: { sequencer } }: CommandContext): Server {
  return sequencer.servers[sequencer.router.default.position.keylessRule.authority];
}

function greeting(context: CommandContext): Buffer {
  const server = defaultServer(context);
  const fields: [string, Buffer][] = [
    // KeyDB calls itself redis.
    ['server', bulk(server.traits.software?.name === 'valkey' ? 'valkey' : 'redis')],
    ['version', bulk(server.traits.software?.version ?? server.traits.version)],
    ['proto', integer(context.client.protocol)],
    ['id', integer(context.client.id)],
    ['mode', bulk(context.clients.face === null ? 'standalone' : 'cluster')],
    ['role', bulk('master')],
    ['modules', array([])],
  ];
  return map(
    fields.flatMap(([key, value]) => [bulk(key), value]),
    context.client.protocol,
  );
}

// ── where ───────────────────────────────────────────────────────────────────────────────────────────────────────

const select: Handler = (context) => {
  if (context.parser.argc !== 2) return arity(context);
  const wanted = text(context, 1);
  const { client, clients } = context;
  if (clients.face !== null && databaseOf(wanted) !== 0 && databaseOf(wanted) !== null)
    return context.refuse('ERR SELECT is not allowed in cluster mode');
  const spec = clients.sequencer.table.byName('select')!;
  if (client.transaction !== null) return client.transaction.queue(spec);
  const refused = refusalOfDatabases(context, spec);
  if (refused !== null) return context.refuse(refused);
  const db = databaseOf(wanted);
  // The authority's reply changes nothing: it is an error, or the client is in that database already.
  if (db === null || db === context.client.db) return plain(context);
  alone(context, () => {
    const identity = { ...context.client.identity, db };
    const { lanes, router } = clients.sequencer;
    lanes[router.default.position.keylessRule.authority]
      .open(identity)
      .then(() => {
        client.become({ db });
        finish(context, OK)(null);
      })
      .catch(fail(context));
  });
};

const reset: Handler = (context) => {
  if (context.parser.argc !== 1) return arity(context);
  alone(context, () => {
    context.client.reset();
    context.admit();
    finish(context, simple('RESET'))(null);
  });
};

const quit: Handler = (context) => {
  context.reply(OK);
  context.end();
};

// ── transactions ────────────────────────────────────────────────────────────────────────────────────────────────

const multi: Handler = (context) => {
  if (context.parser.argc !== 1) return arity(context);
  if (context.client.transaction !== null) return refuseNested(context, 'multi');
  context.client.begin(new Transaction(context));
  context.reply(OK);
};

const exec: Handler = (context) => {
  if (context.parser.argc !== 1) {
    context.client.endTransaction();
    return context.reply(
      error("EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command"),
    );
  }
  if (context.client.transaction === null) return context.reply(error('ERR EXEC without MULTI'));
  context.client.transaction.exec();
};

const discard: Handler = (context) => {
  if (context.parser.argc !== 1) return arity(context);
  if (context.client.transaction === null) return context.reply(error('ERR DISCARD without MULTI'));
  context.client.endTransaction();
  context.reply(OK);
};

/**
 * SCRIPT KILL and FUNCTION KILL: the client's lane is busy with the script, so they take another connection. The server
 * decides whether this user may.
 */
const kill: Handler = (context) => {
  const { servers, router } = context.sequencer;
  const { authority } = router.default.position.keylessRule;
  const command = argumentsOf(context.command);
  const ask = async (side: Side): Promise<Reply> => servers[side].askAs(context.client.credentials, ...command);
  notInTransaction(context, () =>
    alone(context, () => {
      const asked = ask(authority).then((reply) =>
        router.oneAuthority || errorCode(reply) !== 'NOTBUSY' ? reply : ask(otherSide(authority)),
      );
      asked
        .then((reply) => finish(context, simple(replyText(reply)))(isError(reply) ? error(replyText(reply)) : null))
        .catch(fail(context));
    }),
  );
};

/** The rest of an HTTP request could be read as commands. Redis closes the connection without a reply, too. */
const http: Handler = (context) => context.destroy();

/** Answers the command at hand. A client that must log in cannot open a transaction. */
export function answerLocally(context: CommandContext, name: string): void {
  const handler = LOCAL[name];
  const needsLogin = handler === multi || handler === exec || handler === discard || handler === answerCluster;
  if (context.client.credentials !== undefined || !needsLogin) return handler(context);
  const { side, sequencer } = context.clients;
  if (context.client.login.states[side] === 'unknown') {
    context.lanes.retryOn(sequencer.lanes[side].admit(context.client.login));
  } else if (!context.mustLogIn) handler(context);
  else if (handler === exec) {
    context.client.endTransaction();
    context.reply(error(`EXECABORT Transaction discarded because of: ${NOAUTH}`));
  } else context.refuse(NOAUTH);
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
  ...Object.fromEntries(ANSWERED_BY_FACE.map((name) => [name, answerCluster])),
  ...CLIENT,
};
