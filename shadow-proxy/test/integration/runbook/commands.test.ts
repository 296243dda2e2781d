/**
 * The commands that the runbooks tell people to type run as they stand there, against a fleet as Ansible deploys it: a
 * process for each shard, TLS, users with passwords on both sides, and ports of their own.
 *
 * Needs real processes: the commands of the runbooks, typed against a fleet with TLS, logins and a process a shard.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import { freePort } from '../../../src/local/port.js';
import { startRedis, startSentinel, type LocalServer } from '../../../src/local/servers.js';
import { SHELF } from '../../../src/runbook/shelf.js';
import { missing, needs } from '../../support/needs.js';
import { scratch } from '../../support/plans.js';
import { makeCertificates, startTestTarget, type Certificates } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { Program, runCommand, runProgram } from '../cli/process.js';

/** As Ansible's users.acl. */
const USERS = [
  'default off nopass resetchannels -@all',
  'admin on >admin-pw ~* &* +@all',
  'proxy on >proxy-pw ~* &* +@all',
  'app on >app-pw ~* &* +@all -@admin',
];

/** Of the machine, or what other tests run. */
const LEFT_TO_OTHERS: readonly (readonly [line: RegExp, why: string])[] = [
  [/^(sudo )?(systemctl|journalctl|chronyc|top|touch|cd|read|export|tail|grep|terraform|ansible)/, 'the host'],
  [/^curl .*(9121|9090)/, 'exporters and Prometheus'],
  [/^(node\b|npm |node\(\))/, 'a function of the page'],
  [/^sudo -u/, 'the host of a proxy'],
  [/ (status|guard) .*--watch/, 'cli/jobs.test.ts, guard/live.long.test.ts'],
  [/^shadow-proxy .*(--standby|--shard)/, 'cli/standby.test.ts, cli/fleet.test.ts'],
  [/^shadow-compare (runbook|local|assess|plan|demo|run) /, 'runbook/pages.long.test.ts, cli/'],
  [/--cluster (fix|reshard)/, 'a cluster; cluster/'],
  [/ --offline /, 'cli/rollback.test.ts: it ends the proxy'],
];

/** What may be refused, in a fleet that has no such fault now: the exit code, and what is said then. */
const REFUSED: readonly (readonly [line: RegExp, says: RegExp])[] = [
  [/^shadow-compare accept/, /nothing is frozen/],
  [/^shadow-compare job --/, /no backfill or verification is running/],
  [/^shadow-compare (backfill|verify) --stop/, /no backfill or verification|is under way|none/i],
  [/^shadow-compare promote .*--dry-run/, /closed: nothing was changed|not a later one|later/],
  [/^shadow-compare (promote|rollback) /, /is in (shadow|live|off|dualwrite)|stage|not-clean|closed|several/],
  [/^shadow-compare guard/, /counter|unsafe|unknown|safe/],
  [/^shadow-compare (verify|backfill)/, /differ|nothing|no keys|dualwrite/],
  [/^shadow-compare ask --yes target (failover|cluster)/, /requires connected replicas|cluster support disabled/],
  [/^shadow-compare ask (source|target) cluster nodes/, /cluster support disabled/],
];

interface Line {
  readonly where: string;
  readonly text: string;
}

/** Lines of the blocks that are no steps, and commands within sentences; without comments. */
function linesOf(page: string): Line[] {
  const found: Line[] = [];
  let fence: string | null = null;
  readFileSync(join(SHELF, page), 'utf8')
    .split('\n')
    .forEach((line, i) => {
      const where = `${page}:${i + 1}`;
      const [, opens] = /^\s*```(.*)/.exec(line) ?? [];
      if (opens !== undefined) fence = fence === null ? opens : null;
      else if (fence === '' || fence === 'sh')
        found.push({
          where,
          text: line
            .replace(/(^|\s)#.*$/, '')
            .replace(/^\s*\S+\(\) \{.*|^\s*\w+:.*/, '')
            .trim(),
        });
      else if (fence === null)
        for (const [, code] of line.matchAll(/`((?:npx --no-install|keydb-cli|redis-cli|openssl|curl) [^`]+)`/g))
          found.push({ where, text: code });
    });
  return found
    .map(({ where, text }) => ({ where, text: text.replace(/^npx --no-install /, '') }))
    .filter(({ text }) => text !== '');
}

interface Fleet {
  readonly directory: string;
  readonly plan: string;
  readonly certificates: Certificates;
  readonly targets: readonly LocalServer[];
  readonly listens: readonly number[];
  readonly admins: readonly number[];
  /** A node of the first target that may end. */
  readonly spare: LocalServer;
  readonly sentinel: LocalServer;
}

async function withFleet(t: TestContext, body: (fleet: Fleet) => Promise<void>): Promise<void> {
  const tls = makeCertificates();
  const servers: LocalServer[] = [];
  const keep = async (server: Promise<LocalServer>): Promise<LocalServer> => {
    servers.push(await server);
    return servers.at(-1)!;
  };
  try {
    const config = { user: USERS };
    const sources = [await keep(startRedis({ tls, config })), await keep(startRedis({ tls, config }))];
    const targets = [await keep(startTestTarget({ tls, config })), await keep(startTestTarget({ tls, config }))];
    const spare = await keep(startTestTarget({ tls, config }));
    const sentinel = await keep(
      startSentinel(
        { 'keydb-0': { server: targets[0] } },
        {
          tls,
          config: {
            user: ['default off', 'sentinel on >sentinel-pw ~* &* +@all'],
            'tls-replication': 'yes',
            'sentinel auth-user keydb-0': 'proxy',
            'sentinel auth-pass keydb-0': 'proxy-pw',
          },
        },
      ),
    );
    const directory = scratch(t);
    mkdirSync(join(directory, 'secrets'));
    for (const [name, text] of [
      ['token', 'the-token'],
      ['proxy', 'proxy-pw'],
    ])
      writeFileSync(join(directory, 'secrets', name), `${text}\n`);
    const [admins, listens] = [[] as number[], [] as number[]];
    for (let i = 0; i < 2; i++) {
      admins.push(await freePort());
      listens.push(await freePort());
    }
    const login = ({ port }: LocalServer): object => ({
      url: `rediss://proxy@127.0.0.1:${port}`,
      passwordFile: 'secrets/proxy',
    });
    const plan = {
      version: 1,
      name: 'deployed',
      state: './state',
      shards: sources.map((source, i) => ({
        name: `s${i}`,
        listen: `rediss://127.0.0.1:${listens[i]}`,
        source: login(source),
        target: login(targets[i]),
        tls: { listen: { cert: tls.cert, key: tls.key }, source: { ca: tls.ca }, target: { ca: tls.ca } },
        admin: { listen: `127.0.0.1:${admins[i]}`, tokenFile: 'secrets/token' },
      })),
      workloads: [{ name: 'sessions', keys: ['sessions:*'], stage: 'shadow' }],
      admin: { listen: `127.0.0.1:${await freePort()}`, tokenFile: 'secrets/token' },
    };
    const file = join(directory, 'migration.yaml');
    writeFileSync(file, stringify(plan));
    const proxies = ['s0', 's1'].map((name) => new Program(t, 'shadow-proxy', ['--plan', file, '--shard', name]));
    for (const proxy of proxies) await proxy.prints(/"listening"/);
    await body({ directory, plan: file, certificates: tls, targets, spare, sentinel, admins, listens });
  } finally {
    for (const server of servers) await server.stop();
  }
}

/** What a reader puts in the place of a page's capitals. */
function filledIn(
  text: string,
  { plan, directory, spare, certificates, sentinel, targets, listens, admins }: Fleet,
): string {
  const filled = text
    .replace('migration.yaml', plan)
    .replace('"$PLAN"', plan)
    .replace(/\b(NODE|REPLICA|MASTER|OTHER):6390/, `127.0.0.1:${spare.port}`)
    .replace('replicaof REPLICA 6390', `replicaof 127.0.0.1 ${targets[0].port}`)
    .replace(/-h NODE -p 26379/, `-h 127.0.0.1 -p ${sentinel.port}`)
    .replace(/-h NODE -p (6379|6390)/, `-h 127.0.0.1 -p ${targets[0].port}`)
    .replace(/(master-addr-by-name|ckquorum) TARGET/, '$1 keydb-0')
    .replace(/-h PROXY -p 6400/, `-h 127.0.0.1 -p ${listens[0]}`)
    .replace('PROXY:6400', `127.0.0.1:${listens[0]}`)
    .replace('TARGET:6390', `127.0.0.1:${targets[0].port}`)
    .replace('127.0.0.1:9400', `127.0.0.1:${admins[0]}`)
    .replace(/(CA\.crt|\/etc\/keydb\/tls\/ca\.crt)/, certificates.ca)
    .replace('--user USER', '--user admin')
    .replace(/\bFILE\b/, certificates.cert)
    .replace(/\bSHARD\b/, 's0')
    .replace(/\b(NAME|WORKLOAD)\b/, 'sessions')
    .replace('--reason …', '--reason x')
    .replace(/--out (\S+)/, `--out ${join(directory, '$1')}`);
  // A person is asked.
  return /^shadow-compare ask .*(config (set|rewrite|resetstat)|bgsave|failover|shutdown|replicaof)/.test(filled)
    ? filled.replace(/^(shadow-compare \S+)/, '$1 --yes')
    : filled.replace(/^(shadow-compare (?:verify --repair|.* --repair|accept(?! --dry-run)).*)/, '$1 --yes 1000');
}

/** A word of a shell, without its quotes. */
const wordsOf = (line: string): string[] =>
  (line.match(/"[^"]*"|'[^']*'|\S+/g) ?? []).map((word) => word.replace(/^(["'])(.*)\1$/, '$2'));

const PASSWORDS: Readonly<Record<string, string>> = { admin: 'admin-pw', sentinel: 'sentinel-pw' };

async function shell(line: string, input: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn('sh', ['-c', line], { stdio: ['pipe', 'pipe', 'pipe'] });
  const said = { stdout: '', stderr: '' };
  child.stdout.on('data', (text: Buffer) => (said.stdout += text.toString()));
  child.stderr.on('data', (text: Buffer) => (said.stderr += text.toString()));
  child.stdin.on('error', () => undefined).end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...said };
}

describe('the commands of the runbooks', async () => {
  const pages = readdirSync(SHELF).filter((name) => name.endsWith('.md'));
  const all = pages.flatMap((page) => linesOf(page));
  const once = all.filter(({ text }, i) => all.findIndex((other) => other.text === text) === i);
  const mine = once.filter(({ text }) => LEFT_TO_OTHERS.every(([line]) => !line.test(text)));

  assert.ok(mine.length > 60, `${mine.length} are run here`);

  test('each runs in a deployed fleet', { skip: await missing('openssl', 'tls-source', 'tls-target') }, async (t) => {
    if (!(await needs(t, 'keydb'))) return;
    await withFleet(t, async (fleet) => {
      const client = new Redis({
        port: fleet.listens[0],
        username: 'app',
        password: 'app-pw',
        tls: { ca: readFileSync(fleet.certificates.ca) },
      });
      for (let i = 0; i < 20; i++) await client.set(`sessions:${i}`, 'x');
      client.disconnect();
      const problems: string[] = [];
      for (const { where, text } of mine) {
        const line = filledIn(text, fleet);
        if (fleet.spare.pid === undefined) await fleet.spare.start();
        const [first, ...pipe] = line.split(' | ');
        const [program, ...words] = wordsOf(first);
        const ended =
          program === 'shadow-compare'
            ? await runCommand(...words)
            : program === 'shadow-proxy'
              ? await runProgram(t, 'shadow-proxy', words)
              : await shell(first, `${PASSWORDS[/--user (\w+)/.exec(first)?.[1] ?? ''] ?? ''}\n`);
        const said = ended.stdout + ended.stderr;
        if (/ shutdown /.test(line)) await until(() => fleet.spare.pid === undefined, 10_000);
        const filtered = pipe.length === 0 ? ended : await shell(pipe.join(' | '), ended.stdout);
        const mayBeRefused = REFUSED.some(([command, says]) => command.test(line) && says.test(said));
        if (
          /NOAUTH|WRONGPASS|NOPERM|I\/O error|ECONNREFUSED|cannot be reached|closed the connection|unknown option/.test(
            said,
          )
        )
          problems.push(`${where}: ${line}: ${said}`);
        else if (ended.code !== 0 && !mayBeRefused)
          problems.push(`${where}: ${line}: exit code ${ended.code}: ${said}`);
        else if (filtered.stdout === '' && ended.code === 0 && !/client list|report .*--out|cluster nodes/.test(line))
          problems.push(`${where}: ${line}: prints nothing`);
      }
      assert.deepEqual(problems, []);
    });
  });
});
