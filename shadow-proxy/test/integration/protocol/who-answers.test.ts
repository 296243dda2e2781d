/**
 * The handshake finds out which server is at the other end, for every user, and leaves the user no further rights.
 *
 * Needs real servers: INFO and NOAUTH of both servers, before and after a login.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';
import { Turn } from '../../../src/io/turn.js';
import { startRedis, startTarget, type LocalServer } from '../../../src/local/servers.js';
import { errorText, isError, text } from '../../../src/resp/decode.js';
import { Connection } from '../../../src/upstream/connection.js';
import { greetAndAsk } from '../../../src/upstream/handshake.js';
import { parseInfo } from '../../../src/upstream/info.js';
import { LoginProbe } from '../../../src/upstream/login-probe.js';
import { until } from '../../support/shard.js';

const APP = { username: 'app', password: 'pw' };
const KIT = { username: 'kit', password: 'kit' };
const users = [`app on >pw ~* +get +acl|whoami`, `kit on >kit ~* &* +@all`];

async function withServer(
  start: () => Promise<LocalServer>,
  body: (connected: () => Promise<Connection>) => Promise<void>,
): Promise<void> {
  const server = await start();
  const open: Connection[] = [];
  try {
    await body(async () => {
      const socket = connect(server.port, '127.0.0.1');
      await once(socket, 'connect');
      const connection = new Connection(socket, new Turn());
      open.push(connection);
      return connection;
    });
  } finally {
    for (const connection of open) connection.destroy();
    await server.stop();
  }
}

for (const [name, start] of [
  ['source', startRedis],
  ['target', startTarget],
] as const) {
  for (const password of ['', 'secret']) {
    const own = password === '' ? [undefined, KIT] : [KIT];
    test(`the ${name} reports its run ID ${password === '' ? 'without' : 'with'} a password for the default user`, async () => {
      const config = { user: users, ...(password !== '' && { requirepass: password }) };
      await withServer(
        () => start({ config }),
        async (connected) => {
          const asks = await connected();
          await asks.ask('AUTH', KIT.username, KIT.password);
          const expected = parseInfo(text(await asks.ask('INFO', 'server'))).get('run_id');
          assert.match(expected!, /^\w{40}$/);
          for (const kit of own) {
            for (const credentials of [undefined, APP, KIT]) {
              const connection = await connected();
              const { wantsPassword, runId } = await greetAndAsk(connection, 2, credentials, 'named', kit);
              assert.equal(runId, expected);
              assert.equal(wantsPassword, credentials === undefined && password !== '');
              const who = await connection.ask('ACL', 'WHOAMI');
              if (wantsPassword) assert.match(errorText(who), /^NOAUTH/);
              else assert.equal(text(who), credentials?.username ?? 'default');
              assert.equal(isError(await connection.ask('INFO', 'server')), credentials === APP || wantsPassword);
            }
            const refused = await connected();
            await assert.rejects(greetAndAsk(refused, 2, { ...APP, password: 'wrong' }, 'named', kit), /WRONGPASS/);
          }
        },
      );
    });
  }

  // Redis 8.2 and newer do not answer a failed login while earlier replies are on their way.
  test(`the ${name} says whether a password is needed when the kit's own login fails`, async () => {
    await withServer(
      () => start({ config: { user: users } }),
      async (connected) => {
        const admin = await connected();
        const connection = await connected();
        await connection.ask('HELLO', 2, 'AUTH', KIT.username, KIT.password);
        const probe = new LoginProbe({
          connect: () => Promise.resolve(connection),
          probeAuth: () => Promise.reject(new Error('RESET is there')),
          name: 'kit',
          credentials: () => ({ ...KIT, password: 'before it was changed' }),
        });
        const answers: boolean[] = [];
        const ask = async (): Promise<void> => {
          const count = answers.length + 1;
          void probe.needsPassword().then((needed) => answers.push(needed));
          await until(() => answers.length === count);
        };
        await ask();
        await ask();
        await admin.ask('CONFIG', 'SET', 'requirepass', 'secret');
        await ask();
        await ask();
        assert.deepEqual(answers, [false, false, true, true]);
        probe.close();
      },
    );
  });
}
