/**
 * The property of privileges in pieces with seeds of their own, until `ACL_COMMANDS` commands were sent (default: a
 * million). `ACL_SEED` is the first seed.
 *
 * Needs real servers: which rights each server checks, for 100 times as many random commands.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkPrivileges, type Outcome } from './property.js';

const COMMANDS = Number(process.env.ACL_COMMANDS ?? 1_000_000);
const SEED = Number(process.env.ACL_SEED ?? 1);
const PIECE = 25_000;

test(`no client gets, and no mirror holds, what the authority refuses: ${COMMANDS} commands`, async (t) => {
  const total: Outcome = { commands: 0, refused: 0, changes: 0 };
  for (let seed = SEED; total.commands < COMMANDS; seed++) {
    const outcome = await checkPrivileges({
      stage: seed % 3 === 0 ? 'live' : 'shadow',
      seed,
      commands: Math.min(PIECE, COMMANDS - total.commands),
      ms: 300_000,
    });
    for (const count of ['commands', 'refused', 'changes'] as const) total[count] += outcome[count];
    process.stderr.write(`seed ${seed}: ${JSON.stringify(total)}\n`);
  }
  t.diagnostic(JSON.stringify(total));
  assert.ok(total.refused > total.commands / 100);
});
