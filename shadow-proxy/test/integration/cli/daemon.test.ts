/**
 * The daemon as its users run it: a process, signals, files, the admin port.
 *
 * Needs real processes: signals, exit codes, the admin port, and files that are renewed under a running daemon.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { freePort } from '../../../src/local/port.js';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import type { ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import { scratch } from '../../support/plans.js';
import { makeCertificates, withServers, type Certificates } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';
import { runCommand, runProgram } from './process.js';
import { planFor, start, status } from './running.js';
import { needs } from '../../support/needs.js';

describe('the daemon', () => {
  test('serves clients, reports its status, moves a stage when asked, and drains at SIGTERM', async (t) => {
    await withServers(async (servers) => {
      const { daemon, admin, connect } = await start(t, await planFor(servers));
      const client = connect();
      await client.set('session:1', 'x');
      assert.equal((await fetch(`${admin}/readyz`)).status, 200);
      const [shard] = await status(admin);
      assert.deepEqual(
        [shard.name, shard.clients, shard.workloads.map(({ name, stage }) => `${name} ${stage}`)],
        ['a', 1, ['sessions off', 'default off']],
      );

      const moved = await runCommand('promote', 'sessions', '--admin', admin);
      assert.deepEqual([moved.code, moved.stderr], [0, '']);
      assert.match(moved.stdout, /^a: sessions off → dualwrite, done \(commands held for [\d.]+ ms\)\n/);
      await client.set('session:2', 'y');
      const direct = new Redis(servers.target.url);
      t.after(() => direct.disconnect());
      for (let i = 0; i < 100 && (await direct.get('session:2')) === null; i++)
        await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(await direct.get('session:2'), 'y');

      const refused = await runProgram(t, 'shadow-compare', [
        'promote',
        'sessions',
        '--to',
        'complete',
        '--admin',
        admin,
      ]);
      assert.equal(refused.code, 1, refused.stderr);
      const unknown = await runCommand('promote', 'nobody', '--admin', admin);
      assert.equal(unknown.code, 2, unknown.stderr);
      const shown = await runCommand('status', '--admin', admin);
      assert.match(shown.stdout, /sessions +dualwrite/);
      const metrics = await (await fetch(`${admin}/metrics`)).text();
      assert.match(metrics, /^shadow_proxy_workload_stage\{shard="a",workload="sessions",stage="dualwrite"\} 1$/m);

      daemon.signal('SIGTERM');
      assert.equal(await daemon.exit(), 0, daemon.stdout);
      assert.match(daemon.stdout, /"msg":"drained"/);
      for (const line of daemon.stdout.trim().split('\n')) assert.ok((JSON.parse(line) as { level: string }).level);
    });
  });

  test('keeps a stage over a restart, whatever the plan says', async (t) => {
    await withServers(async (servers) => {
      const plan = await planFor(servers);
      const first = await start(t, plan);
      assert.equal((await runCommand('promote', 'sessions', '--admin', first.admin)).code, 0);
      first.daemon.signal('SIGTERM');
      await first.daemon.exit();
      const second = await start(
        t,
        { ...plan, workloads: [{ ...plan.workloads[0], stage: 'shadow' }] },
        first.directory,
      );
      assert.equal((await status(second.admin))[0].workloads[0].stage, 'dualwrite');
      assert.match(
        second.daemon.stdout,
        /workload sessions is in dualwrite; the plan's shadow was only the first stage, and is ignored/,
      );
      second.daemon.signal('SIGTERM');
      await second.daemon.exit();

      writeFileSync(second.file, stringify({ ...plan, workloads: [] }));
      const moved = await runProgram(t, 'shadow-proxy', ['--plan', second.file, '--log-level', 'silent']);
      assert.equal(moved.code, 2);
      assert.match(
        moved.stderr,
        /keys of session:\* could move from workload sessions \(dualwrite\) to default \(off\)/,
      );
    });
  });

  test('reloads a plan at SIGHUP, or refuses it whole', async (t) => {
    await withServers(async (servers) => {
      const { daemon, reload, connect, admin, file, directory } = await start(t, await planFor(servers));
      reload((plan) => (plan.limits = { clients: 1 }));
      await daemon.prints(/"the plan was reloaded"/);
      reload((plan) => (plan.default = { stage: 'shadow' }));
      await daemon.prints(/"the plan was reloaded"[\s\S]*"the plan was reloaded"/);
      assert.deepEqual((await status(admin))[0].workloads.at(-1)?.stage, 'off');
      const [first, second] = [connect(), connect()];
      await first.ping();
      await assert.rejects(second.ping(), 'the new limit of clients holds');
      first.disconnect();
      reload((plan) => (plan.workloads = []));
      await daemon.prints(
        /"problem":"workloads changed: restart the proxy for that","msg":"the plan is not reloaded: the old plan stays in use"/,
      );
      reload((plan) => (plan.shards[0].source = 'redis://127.0.0.1:1'));
      await daemon.prints(
        /"problem":"source of shard a changed: restart the proxy for that","msg":"the plan is not reloaded: the old plan stays in use"/,
      );
      writeFileSync(file, 'version: 2\n');
      daemon.signal('SIGHUP');
      await daemon.prints(/"problem":"[^"]*plan\.yaml:1:10: version is 2: 1 is allowed/);
      assert.equal((await fetch(`${admin}/readyz`)).status, 200);

      daemon.signal('SIGTERM');
      assert.equal(await daemon.exit(), 0);
      const state = JSON.parse(readFileSync(join(directory, 'state', 'a', 'state.json'), 'utf8')) as Record<
        string,
        unknown
      >;
      assert.equal(state.cleanShutdown, true);
    });
  });

  test('a renewed certificate, another password, limit or redaction hold after a SIGHUP, and nobody is disconnected', async (t) => {
    if (!(await needs(t, 'openssl'))) return;
    const [before, after] = [makeCertificates(), makeCertificates()];
    const files = { 'proxy.crt': before.cert, 'proxy.key': before.key };
    const directory = scratch(t, {
      password: 'old\n',
      ...Object.fromEntries(Object.entries(files).map(([name, path]) => [name, readFileSync(path, 'utf8')])),
    });
    await withServers(
      async (servers) => {
        const port = await freePort();
        const plan = await planFor(servers, (p) => {
          p.shards[0].listen = `rediss://127.0.0.1:${port}`;
          p.shards[0].tls = { listen: { cert: 'proxy.crt', key: 'proxy.key' } };
          p.shards[0].source = { url: servers.source.url, passwordFile: 'password' };
          p.default = { stage: 'shadow' };
        });
        const { daemon, reload, admin } = await start(t, plan, directory);
        const client = async ({ ca }: Certificates): Promise<Wire> => {
          const wire = await Wire.open({ port, tls: { ca: readFileSync(ca) } });
          t.after(() => wire.destroy());
          return wire;
        };
        const old = await client(before);
        assert.deepEqual(
          await old.pipeline([
            ['AUTH', 'old'],
            ['SET', 'k', 'secret'],
          ]),
          ['+OK', '+OK'],
        );

        for (const [name, path] of Object.entries({ 'proxy.crt': after.cert, 'proxy.key': after.key }))
          writeFileSync(join(directory, name), readFileSync(path));
        writeFileSync(join(directory, 'password'), 'new\n');
        // Both are right until the kit has the new one.
        assert.match(await old.ask('ACL', 'SETUSER', 'default', '>new'), /^-ERR shadow-proxy/);
        const server = new Redis(servers.source.url, { password: 'old' });
        t.after(() => server.disconnect());
        await server.call('ACL', 'SETUSER', 'default', '>new');
        reload((p) => Object.assign(p, { limits: { clients: 2 }, ledger: { redact: false } }));
        await daemon.prints(/"the plan was reloaded"/);
        await server.call('ACL', 'SETUSER', 'default', '<old');

        assert.equal(await old.ask('GET', 'k'), '$6\r\nsecret');
        await assert.rejects(client(before), /self-signed|certificate|unable to/i);
        // A client that disconnected is counted until the proxy has read the end of its connection.
        const clientSoon = async (): Promise<Wire> => {
          let wire!: Wire;
          await until(() =>
            client(after).then(
              (opened) => ((wire = opened), true),
              () => false,
            ),
          );
          return wire;
        };
        const fresh = await clientSoon();
        assert.deepEqual(
          await fresh
            .pipeline([
              ['AUTH', 'old'],
              ['AUTH', 'new'],
              ['GET', 'k'],
            ])
            .then(([refused, ...rest]) => [refused.slice(0, 10), ...rest]),
          ['-WRONGPASS', '+OK', '$6\r\nsecret'],
        );
        // As with Redis: nothing is written before the handshake.
        await assert.rejects(
          client(after)
            .then((third) => third.ask('PING'))
            .then((answer) => assert.equal(answer, '+PONG')),
          /disconnected before secure TLS|ECONNRESET/,
        );

        // The kit's own connections come again with the new password.
        await server.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        await until(
          async () => (await fetch(`${admin}/readyz`)).status === 200 && (await status(admin))[0].mirror.connected,
          5_000,
          () => daemon.stdout,
        );
        old.destroy();
        fresh.destroy();
        const again = await clientSoon();
        await again.pipeline([
          ['AUTH', 'new'],
          ['SET', 'k', 'again'],
        ]);
        const target = new Redis(servers.target.url);
        t.after(() => target.disconnect());
        await until(async () => (await target.get('k')) === 'again');
        await target.set('k', 'behind its back');
        assert.equal(await again.ask('GET', 'k'), '$5\r\nagain');
        const ledger = join(directory, 'state', 'a', 'ledger.jsonl');
        await until(() => existsSync(ledger) && readFileSync(ledger, 'utf8').includes('behind its back'));
        daemon.signal('SIGTERM');
        await daemon.exit();
      },
      { source: { config: { requirepass: 'old' } } },
    );
  });

  test('has one shard of several, with its own admin address', async (t) => {
    await withServers(async (servers) => {
      const own = await freePort();
      const plan = await planFor(servers, (p) => {
        p.shards.push({
          name: 'b',
          listen: `redis://127.0.0.1:0`,
          source: 'redis://127.0.0.1:1',
          target: servers.target.url,
        });
        p.shards[0].admin = { listen: `127.0.0.1:${own}`, token: '${ADMIN_TOKEN}' };
      });
      process.env.ADMIN_TOKEN = 't0ken';
      t.after(() => delete process.env.ADMIN_TOKEN);
      const { daemon, admin } = await start(t, plan, undefined, ['--shard', 'a']);
      await assert.rejects(fetch(`${admin}/readyz`), 'the plan’s own address stays closed');
      assert.equal((await fetch(`http://127.0.0.1:${own}/api/status`)).status, 401);
      const shown = await runProgram(t, 'shadow-compare', ['status', '--json', '--admin', `127.0.0.1:${own}`], {
        SHADOW_PROXY_TOKEN: 't0ken',
      });
      assert.deepEqual(
        (JSON.parse(shown.stdout) as ShardSnapshot[]).map(({ name }) => name),
        ['a'],
      );
      assert.doesNotMatch(daemon.stdout, /t0ken/);
    });
  });

  test('does not start where one of its shards cannot, and stops the others', async (t) => {
    await withServers(async (servers) => {
      const plan = await planFor(servers, (p) =>
        p.shards.push({
          name: 'b',
          listen: `redis://127.0.0.1:0`,
          source: 'redis://127.0.0.1:1',
          target: servers.target.url,
        }),
      );
      const directory = scratch(t, { 'plan.yaml': stringify(plan) });
      const { code, stderr } = await runProgram(t, 'shadow-proxy', [
        '--plan',
        join(directory, 'plan.yaml'),
        '--log-level',
        'silent',
      ]);
      assert.equal(code, 3);
      assert.match(stderr, /^shard b cannot start: .*ECONNREFUSED/);
    });
  });

  test('stops at a state that it cannot read', async (t) => {
    await withServers(async (servers) => {
      const plan = await planFor(servers);
      const { daemon, directory, file } = await start(t, plan);
      daemon.signal('SIGTERM');
      await daemon.exit();
      writeFileSync(join(directory, 'state', 'a', 'state.json'), '{');
      const { code, stderr } = await runProgram(t, 'shadow-proxy', ['--plan', file, '--log-level', 'silent']);
      assert.equal(code, 2);
      assert.match(stderr, /state\.json is damaged: it is not JSON.*Restore it from a copy/);
    });
  });
});
