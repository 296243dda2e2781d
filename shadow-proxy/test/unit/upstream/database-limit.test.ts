/** Which databases can be selected, by what a server answers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeReply } from '../../../src/resp/decode.js';
import { findDatabaseLimit, refusesDatabase } from '../../../src/upstream/database-limit.js';

const reply = (line: string) => decodeReply(Buffer.from(`${line}\r\n`)).reply;
const BEYOND = 'ERR DB index is out of range';

/** A server with so many databases. */
function serverWith(count: number, refusal = BEYOND) {
  const asked: number[] = [];
  return {
    asked,
    ask: async (...args: unknown[]) => {
      const db = Number(args[1]);
      asked.push(db);
      return reply(db < count ? '+OK' : `-${refusal}`);
    },
  };
}

test('the number of databases is found whatever the settings say, with two questions where they are right', async () => {
  for (const count of [1, 2, 3, 15, 16, 17, 64, 1000, 10_000])
    for (const configured of [null, 1, 16, count]) {
      const { ask } = serverWith(count);
      assert.deepEqual(await findDatabaseLimit(ask, configured), { count, refusal: BEYOND }, `${configured}`);
    }
  const { ask, asked } = serverWith(64);
  await findDatabaseLimit(ask, 64);
  assert.deepEqual(asked, [64, 63]);
});

test('a server that refuses every SELECT lets nobody into another database, and says why', async () => {
  const refusal = "NOPERM this user has no permissions to run the 'select' command";
  assert.deepEqual(await findDatabaseLimit(serverWith(0, refusal).ask, 16), { count: 1, refusal });
});

test('an error about the state of the server says nothing of its databases', async () => {
  await assert.rejects(findDatabaseLimit(serverWith(0, 'BUSY Redis is busy').ask, 16), /BUSY/);
  for (const refusal of ['LOADING Redis is loading', 'NOAUTH Authentication required.'])
    assert.equal(refusesDatabase(refusal), false);
  for (const refusal of [BEYOND, "ERR unknown command 'SELECT'", 'ERR SELECT is not allowed in cluster mode'])
    assert.equal(refusesDatabase(refusal), true);
});
