/**
 * What servers, receivers and the admin API send is printed without control characters.
 *
 * Needs real processes: control characters in texts of servers and receivers, on the output of the real program.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import { startRedis, stopServers } from '../../../src/local/servers.js';
import { startReceiver } from '../../support/notices.js';
import { scratch, smallPlan } from '../../support/plans.js';
import { assertPrintable, HOSTILE } from '../../support/raw-text.js';
import { withServers } from '../../support/servers.js';
import { runCommand, runProgram } from './process.js';
import { planFor, start } from './running.js';

/** Of a value of JSON: each text in it, and each name that is no field of ours, with what puts another in its place. */
type Place = readonly (string | number)[];

function textsIn(value: unknown, at: Place = []): Place[] {
  if (typeof value === 'string') return [at];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => textsIn(each, [...at, Array.isArray(value) ? +name : name]));
}

function withHostile(value: unknown, [name, ...below]: Place): unknown {
  if (name === undefined) return `${String(value)}${HOSTILE}`;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<string | number, unknown>;
  copy[name] = withHostile(copy[name], below);
  return copy;
}

test('no text of the admin API reaches the terminal with control characters, or forges a line', async (t) => {
  await withServers(async (servers) => {
    const plan = await planFor(servers, (changed) => (changed.ledger = { redact: false }));
    const running = await start(t, plan);
    const client = running.connect();
    await client.set('session:1', 'a');
    await client.set('session:2', 'a');
    await client.call('WHATEVER').catch(() => undefined);
    const proxy = async (...args: string[]): Promise<void> => {
      const { code, stderr } = await runCommand(...args, '--admin', running.admin);
      assert.equal(code, 0, stderr);
    };
    await proxy('promote', 'sessions', '--to', 'dualwrite');
    await proxy('backfill');
    await proxy('promote', 'sessions', '--to', 'shadow', '--force', '--force-suspects', '--reason', HOSTILE);
    await client.get('session:1');
    await runCommand('verify', '--admin', running.admin);

    // The answers of a real proxy, one text at a time changed.
    const answers = new Map<string, unknown>();
    const asked = new Set<string>();
    let changed: { readonly paths: readonly string[]; readonly place: Place } | null = null;
    const hasText = (path: string, place: Place): boolean =>
      textsIn(answers.get(path)).some((each) => each.join() === place.join());
    const mirror = createServer((request, response) => {
      void (async () => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        const path = `${request.method} ${request.url}`;
        asked.add(path);
        const known = answers.get(path);
        const answer =
          known ??
          (await (
            await fetch(`${running.admin}${request.url}`, {
              method: request.method,
              ...(chunks.length > 0 && {
                body: Buffer.concat(chunks),
                headers: { 'content-type': 'application/json' },
              }),
            })
          ).json());
        // A job that runs is followed until it ends.
        for (const { job } of (answer as { jobs?: { job: { state: string } }[] }).jobs ?? []) job.state = 'done';
        answers.set(path, answer);
        response.end(JSON.stringify(changed?.paths.includes(path) ? withHostile(answer, changed.place) : answer));
      })();
    });
    await once(mirror.listen(0, '127.0.0.1'), 'listening');
    t.after(() => mirror.close());
    const admin = ['--admin', `127.0.0.1:${(mirror.address() as AddressInfo).port}`];
    const run = async (args: readonly string[]): Promise<string> => {
      const { stdout, stderr } = await runCommand(...args);
      return stdout + stderr;
    };
    let tried = 0;
    for (const args of [
      ['status'],
      ['status', '--json'],
      ['history'],
      ['promote', 'sessions', '--dry-run'],
      ['rollback', 'sessions', '--dry-run'],
      ['verify'],
      ['accept', '--dry-run'],
      ['report', '--format', 'md'],
      ['report', '--format', 'html'],
    ]) {
      // Its authority has another run ID: there is something to accept.
      if (args[0] === 'accept')
        for (const shard of (answers.get('GET /api/status') as { shards: { frozen: string }[] }).shards)
          shard.frozen = 'the source has another run ID';
      asked.clear();
      changed = null;
      const plain = await run([...args, ...admin]);
      assertPrintable(plain, `${args.join(' ')}, unchanged`);
      let shown = 0;
      const paths = [...asked];
      for (const path of paths)
        for (const place of textsIn(answers.get(path))) {
          // A shard has one name in all answers: a job of another shard is not the one that was started.
          changed = { paths: place.at(-1) === 'shard' ? paths.filter((each) => hasText(each, place)) : [path], place };
          const what = `${args.join(' ')} with another ${path} ${place.join('.')}`;
          const printed = await run([...args, ...admin]);
          assertPrintable(printed, what);
          if (printed.includes('\\u001b')) shown++;
          tried++;
        }
      assert.ok(shown > 0, `${args.join(' ')} prints none of what was changed`);
    }
    assert.ok(tried > 100, `${tried} texts were tried`);
    const metrics = await (await fetch(`${running.admin}/metrics`)).text();
    assertPrintable(metrics, 'metrics');
    assertPrintable(running.daemon.stdout, 'the log');
    assertPrintable(await (await fetch(`${running.admin}/api/history`)).text(), '/api/history');
  });
});

test('names and errors of a server, and answers of a receiver, are printed without control characters', async (t) => {
  t.after(() => stopServers());
  const server = await startRedis();
  const client = new Redis(server.port);
  t.after(() => client.disconnect());
  for (let i = 0; i < 20; i++) {
    await client.set(`session:${i}`, 'x');
    await client.set(`session${HOSTILE}:${i}`, 'x');
    await client.set(`${HOSTILE}${i}:a`, 'x');
  }
  for (const args of [
    ['assess', server.url, '--for', '300ms'],
    ['assess', server.url, '--for', '300ms', '--json'],
    ['plan', 'init', '--from', server.url, '--out', join(scratch(t), 'plan.yaml')],
  ]) {
    const { code, stdout, stderr } = await runCommand(...args);
    assert.ok(stdout.length > 100, stderr);
    assertPrintable(stdout + stderr, `${args.join(' ')} ended with ${code}`);
  }

  // What an operator typed, or pasted: here nothing but the writer itself escapes it.
  const pasted = HOSTILE.replaceAll('\n', '');
  for (const args of [['status', '--admin', pasted], [`status${pasted}`], ['runbook', pasted]]) {
    const { stdout, stderr } = await runCommand(...args);
    assert.match(stdout + stderr, /\\u001b/);
    assertPrintable(stdout + stderr, args[0]);
  }

  const hook = await startReceiver(t);
  hook.answer = { status: 404, text: HOSTILE };
  const plan = join(
    scratch(t, { 'plan.yaml': stringify({ ...smallPlan(), notify: [{ kind: 'slack', url: `${hook.url}/x` }] }) }),
    'plan.yaml',
  );
  for (const more of [[], ['--json']]) {
    const { stdout, stderr } = await runProgram(t, 'shadow-compare', ['notify', '--plan', plan, '--test', ...more]);
    assert.match(stdout, /404/);
    assertPrintable(stdout + stderr, 'notify');
  }
});
