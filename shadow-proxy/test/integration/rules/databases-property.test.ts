/**
 * Random databases on both servers, and frames that the mirror refuses: no key of another database is touched.
 *
 * Needs real servers: KeyDB's SELECT, and frames that it refuses, among random commands in several databases.
 */
import { test } from 'node:test';
import { loadDatabases } from './databases-load.js';

for (let i = 0; i < 6; i++) {
  test(`no key of another database is touched, whatever the mirror refuses (${i + 1})`, async (t) => {
    t.diagnostic(await loadDatabases(Math.floor(Math.random() * 2 ** 32), 1_000));
  });
}
