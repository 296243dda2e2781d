/**
 * The key and the state directory together give the hash of a line of the ledger; the key alone does not.
 *
 * Needs real files: the key of the state folder, with which the ledger hashes names of keys.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import type { LedgerEntry } from '../../../src/telemetry/ledger.js';
import { scratch } from '../../support/plans.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { runCommand } from './process.js';
import { planFor, start } from './running.js';

test('key-hash gives the hash under which a mismatch of the key is in the ledger, which no list of guesses gives; the entry names the pattern', async (t) => {
  await withServers(async (servers) => {
    const directory = scratch(t);
    const plan = await planFor(servers, (each) => {
      each.workloads[0].keys = ['token:*', 'session:*'];
      each.default = { stage: 'shadow' };
      each.workloads[0].stage = 'shadow';
      each.ledger = { redact: true };
    });
    const running = await start(t, plan, directory);
    const direct = new Redis({ port: servers.target.port });
    const client = running.connect();
    await client.set('session:4217', 'x');
    await until(async () => (await direct.get('session:4217')) === 'x');
    await direct.set('session:4217', 'another');
    direct.disconnect();
    await client.get('session:4217');
    const file = join(directory, 'state', 'a', 'ledger.jsonl');
    await until(() => existsSync(file) && /"kind"/.test(readFileSync(file, 'utf8')));
    const [line] = readFileSync(file, 'utf8').split('\n');
    const { key, pattern } = JSON.parse(line) as LedgerEntry;
    assert.equal(pattern, 'session:*');
    assert.notEqual(key!.hash, createHash('sha256').update('session:4217').digest('hex').slice(0, 16));
    const ask = (...args: string[]): ReturnType<typeof runCommand> =>
      runCommand('key-hash', '--plan', running.file, ...args);
    assert.deepEqual(await ask('session:4217'), {
      code: 0,
      stdout: `a  ${key!.hash}  sessions (session:*)\n`,
      stderr: '',
    });
    assert.deepEqual(
      JSON.parse((await ask('other', '--json')).stdout).map(
        ({ workload, pattern: of }: { workload: string; pattern: string | null }) => [workload, of],
      ),
      [['default', null]],
    );
    assert.match((await ask('k', '--shard', 'b')).stderr, /^--shard b: the plan has no such shard\. Its shards: a/);
    writeFileSync(join(directory, 'state', 'a', 'hash-key'), 'not a key');
    const damaged = await ask('k');
    assert.deepEqual([damaged.code, /hash-key is damaged: it is not 64 hex digits/.test(damaged.stderr)], [1, true]);
    plan.state = './elsewhere';
    writeFileSync(running.file, JSON.stringify(plan));
    const missing = await ask('k');
    assert.deepEqual(
      [
        missing.code,
        /elsewhere\/a\/hash-key: not found\. Run this command on the machine that has the state directory/.test(
          missing.stderr,
        ),
      ],
      [1, true],
    );
  });
});
