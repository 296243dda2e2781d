/**
 * Backfill and verify from the CLI, with kills, Ctrl-C and confirmations.
 *
 * Needs real processes: SIGKILL of the proxy and of the program in the middle of a backfill, and Ctrl-C.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { JobSnapshot } from '../../../src/telemetry/snapshot.js';
import { differences } from '../../support/keyspace.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { Program, runCommand } from './process.js';
import { planFor, start, status } from './running.js';

const KEYS = 6_000;

async function fill(url: string): Promise<void> {
  const source = new Redis(url);
  const pipeline = source.pipeline();
  for (let i = 0; i < KEYS; i++) pipeline.set(`session:${i}`, `secret ${i}`);
  await pipeline.exec();
  source.disconnect();
}

const results = (text: string): { shard: string; job: JobSnapshot }[] =>
  JSON.parse(text) as { shard: string; job: JobSnapshot }[];

describe('keys of the target that the proxy did not write', () => {
  test('promote names them and asks for their number, backfill counts them, and deletes what was confirmed', async (t) => {
    await withServers(async (servers) => {
      const direct = new Redis(servers.target.url);
      const source = new Redis(servers.source.url, { connectionName: 'test' });
      t.after(() => (direct.disconnect(), source.disconnect()));
      for (const key of ['session:1', 'session:2', 'session:3']) await direct.set(key, 'foreign');
      for (const key of ['session:3', 'session:4']) await source.set(key, 'secret');
      const plan = await planFor(servers, (planned) => Object.assign(planned, { knownClients: ['test'] }));
      const { admin } = await start(t, plan, undefined, ['--first-start']);
      const tell = async (code: number, ...args: string[]): Promise<string> => {
        const ended = await runCommand(...args, '--admin', admin);
        assert.equal(ended.code, code, `${args.join(' ')}: ${ended.stderr}${ended.stdout}`);
        return `${ended.stdout}${ended.stderr}`.replace(/[\s│]+/g, ' ');
      };
      /** Keys copied, overwritten, deleted and kept: of a dry run, and of the run that follows. */
      const counted = (text: string): (string | undefined)[] =>
        /([\d,]+) keys? (?:would be copied|copied \([^)]*\)), ([\d,]+) overwritten, ([\d,]+) deleted, ([\d,]+) foreign keys? kept/
          .exec(text)
          ?.slice(1) ?? [];
      const agree = async (...more: string[]): Promise<string> => {
        const dry = await tell(0, 'backfill', '--dry-run', ...more.filter((word) => !/^(--yes|\d+)$/.test(word)));
        assert.match(dry, /would be copied/);
        const held = await direct.keys('*');
        const real = await tell(0, 'backfill', ...more);
        assert.deepEqual(counted(real), counted(dry));
        const [, , deleted] = counted(real);
        const now = await direct.keys('*');
        assert.equal(held.filter((key) => !now.includes(key)).length, Number(deleted), 'as many as it said are gone');
        return real;
      };
      assert.equal(
        await tell(1, 'backfill', '--dry-run'),
        await tell(1, 'backfill'),
        'both are refused for the same reason, with the same next step',
      );
      const closed = await tell(1, 'promote', 'sessions', '--force', '--reason', 'in a hurry');
      assert.match(
        closed,
        /NO target 3 keys of this workload are on the target and were not written by this shard: 1 are on the source, too, 2 are foreign keys \(examples: session:<.*nothing was changed/,
      );
      assert.match(
        await tell(2, 'promote', 'sessions', '--overwrite'),
        /1 key also on the source: overwritten; 2 foreign keys: kept until a client writes them.*Confirm with --yes 3/,
      );
      assert.match(await tell(1, 'promote', 'sessions', '--delete-foreign', '--yes', '3'), /add --overwrite/);
      assert.match(await tell(1, 'promote', 'sessions', '--overwrite', '--yes', '2'), /--yes 2 is too small/);
      await tell(0, 'promote', 'sessions', '--overwrite', '--yes', '3');
      assert.match(
        await tell(0, 'backfill', '--dry-run'),
        /2 keys would be copied, 1 overwritten, 0 deleted, 2 foreign keys kept/,
      );
      assert.match(
        await tell(2, 'backfill', '--delete-foreign'),
        /Foreign keys \(on the target, not on the source\) will be deleted: 2 keys.*--yes 2/,
      );
      assert.match(await agree(), /2 keys copied .*1 overwritten, 0 deleted, 2 foreign keys kept/);
      assert.equal(await direct.dbsize(), 4);
      assert.match(await agree('--delete-foreign', '--yes', '2'), /2 keys copied .*2 deleted, 0 foreign keys kept/);
      assert.deepEqual(await differences(servers.source, servers.target), []);
      const printed = await tell(0, 'history');
      assert.match(
        printed,
        /may overwrite: 3 keys of the target confirmed, by .*backfill of sessions may delete 2 keys that only the mirror has, by /,
      );
    });
  });
});

describe('backfill and verify', () => {
  test('a backfill goes on after both processes were killed, and verify finds what was changed behind the proxy', async (t) => {
    await withServers(async (servers) => {
      await fill(servers.source.url);
      const plan = await planFor(
        servers,
        (plan) =>
          (plan.workloads = [
            { name: 'sessions', keys: ['session:*'], stage: 'dualwrite' },
            { name: 'carts', keys: ['cart:*'], stage: 'dualwrite' },
          ]),
      );
      const first = await start(t, plan);
      const options = ['--admin', first.admin];
      const backfill = new Program(t, 'shadow-compare', [
        'backfill',
        '--keys-per-second',
        '2500',
        '--json',
        ...options,
      ]);
      const seen = async (): Promise<number> => (await status(first.admin))[0].job?.copied ?? 0;
      while ((await seen()) < KEYS / 3) await sleep(50);
      backfill.signal('SIGKILL');
      const atEnd = await seen();
      await until(async () => (await seen()) > atEnd);
      first.daemon.signal('SIGKILL');
      await first.daemon.exit();
      const direct = new Redis(servers.target.url);
      t.after(() => direct.disconnect());
      const copied = await direct.dbsize();
      assert.ok(copied > KEYS / 3 && copied < KEYS, String(copied));
      const second = await start(t, plan, first.directory);
      assert.equal((await status(second.admin))[0].job?.state, 'running');
      const again = await runCommand('backfill', '--json', ...options);
      assert.equal(again.code, 0, again.stderr);
      const [{ job }] = results(again.stdout);
      assert.equal(job.state, 'done');
      // What clients wrote before the second process is not known: the second scan copies each key again.
      assert.ok(job.copied >= KEYS && job.copied < 2.25 * KEYS, `${job.copied} copies of ${KEYS} keys`);
      // The backfill is done, and no key became a suspect since.
      const [{ job: still }] = results((await runCommand('backfill', '--json', ...options)).stdout);
      assert.deepEqual([still.state, still.copied, still.endedAt], ['done', job.copied, job.endedAt]);
      assert.equal((await status(second.admin))[0].workloads[0].suspect, null);
      assert.deepEqual(await differences(servers.source, servers.target), []);

      assert.deepEqual((await runCommand('verify', ...options)).code, 0);
      await direct.set('session:7', 'changed');
      await direct.set('session:new', 'secret');
      const found = await runCommand('verify', ...options);
      assert.equal(found.code, 1);
      assert.match(
        found.stdout,
        /^a: verify done: 6,001 keys compared, 2 differ \((1 value, 1 extra|1 extra, 1 value)\)\n( {2}db 0 session:<\d+ bytes, [0-9a-f]{16}>: (different value on the mirror|only the mirror has it)\n){2}$/,
      );
      const report = readFileSync(join(second.directory, 'state', 'a', 'differences.jsonl'), 'utf8');
      assert.match(report, /"key":"session:<\d+ bytes, [0-9a-f]{16}>"/);
      assert.ok(!/secret|changed|session:7/.test(report), report);
      const asked = await runCommand('verify', '--repair', ...options);
      assert.equal(asked.code, 2);
      assert.match(asked.stdout, /2 differ .*1 repaired \(0 deleted, 1 foreign key kept\)/);
      assert.match(
        asked.stderr,
        /Keys that only the mirror has will be deleted: 1 key\. No terminal to ask on: nothing was deleted or overwritten\. Confirm with --yes 1/,
      );
      const repaired = await runCommand('verify', '--repair', '--yes', '1', ...options);
      assert.equal(repaired.code, 0, repaired.stderr);
      assert.match(repaired.stdout, /1 repaired \(1 deleted/);
      const looked = await runCommand('verify', '--workload', 'carts', ...options);
      assert.equal(looked.code, 3, looked.stdout);
      assert.match(looked.stdout, /0 keys compared, 0 differ\n {2}Inconclusive: no key of carts was found/);
      assert.deepEqual(await differences(servers.source, servers.target), []);
    });
  });

  test('what cannot be begun says why, and what to do', async (t) => {
    await withServers(async (servers) => {
      const { admin } = await start(t, await planFor(servers));
      const tell = async (...args: string[]) => {
        const { code, stderr } = await runCommand(...args, '--admin', admin);
        return `${code} ${stderr.split('\n')[0]}`;
      };
      assert.match(
        await tell('backfill'),
        /^1 no workload is written to both servers \("sessions" is in off, "default" is in off\): move one to dualwrite first/,
      );
      assert.match(
        await tell('backfill', '--workload', 'session'),
        /^2 there is no workload "session" \(did you mean sessions\?\): the plan has sessions, default/,
      );
      assert.match(await tell('verify', '--shard', 'b'), /^2 there is no shard b here\. The shards: a/);
      assert.match(await tell('verify', '--sample', '200'), /^2 .*--sample.*above 0, up to 100/);
      assert.match(await tell('backfill', '--stop'), /^1 no backfill or verify job is running: nothing was stopped/);
      assert.match(await tell('accept', '--shard', 'b'), /^2 --shard b: the proxy has no such shard\. Its shards: a/);
      assert.match(await tell('verify', '--yes', '3'), /^2 --yes confirms the deletions of --repair: add --repair/);
      assert.match(await tell('promote', 'sessions', '--yes', 'many'), /^2 .*--yes.*whole number/);
      assert.match(await tell('backfill', '--keys-per-second', '-1'), /^2 .*--keys-per-second.*above 0/);
    });
  });
});

for (const kind of ['backfill', 'verify'] as const)
  test(`Ctrl-C on ${kind} ends the program and not the job, and says how to watch and to stop it`, async (t) => {
    await withServers(async (servers) => {
      await fill(servers.source.url);
      const plan = await planFor(servers, (planned) => {
        planned.workloads = [{ name: 'sessions', keys: ['session:*'], stage: 'dualwrite' }];
      });
      const { admin, file } = await start(t, plan);
      const job = async (): Promise<JobSnapshot | null> => (await status(admin))[0]!.job;
      const followed = new Program(t, 'shadow-compare', [kind, '--keys-per-second', '500', '--plan', file]);
      for (const until = Date.now() + 10_000; Date.now() < until && !followed.stderr.includes(kind);) await sleep(20);
      followed.signal('SIGINT');
      assert.equal(await followed.exit(), 130);
      const [, watch, stop] =
        /\nThe \w+ job goes on in the proxy\.\n {2}Watch it: npx --no-install shadow-compare (.*)\n {2}Stop it: {2}npx --no-install shadow-compare (.*)\n$/.exec(
          followed.stderr,
        ) ?? [];
      assert.deepEqual([watch, stop], [`status --watch --plan ${file}`, `${kind} --stop --plan ${file}`]);
      const before = await job();
      assert.deepEqual([before!.kind, before!.state], [kind, 'running']);
      const watched = new Program(t, 'shadow-compare', watch!.split(' '));
      await watched.prints(new RegExp(`${kind} running`));
      watched.signal('SIGINT');
      const goesOn = async (): Promise<boolean> => (await job())!.seen > before!.seen;
      for (const until = Date.now() + 10_000; Date.now() < until && !(await goesOn());) await sleep(50);
      assert.ok(await goesOn(), 'it goes on');
      await runCommand(...stop!.split(' '));
      assert.equal((await job())!.state, 'stopped');
    });
  });
