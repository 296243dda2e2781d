/**
 * What Prometheus, HTTP services and programs answer, and what the gate `checks` makes of it.
 *
 * Needs real sockets: answers of HTTP services, and a real Prometheus.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { freePort } from '../../../src/local/port.js';
import type { CheckPlan } from '../../../src/plan/plan.js';
import { askCheck, ExternalChecks, judgeChecks } from '../../../src/stages/external-checks.js';
import { needs } from '../../support/needs.js';
import { until } from '../../support/shard.js';

const ABOUT = { shard: 'cache-0', workload: 'sessions', stage: 'shadow', percent: 100 } as const;
const COMMON = { name: 'errors', workloads: null, deadlineMs: 10_000 } as const;

async function serve(
  t: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Says `yes: …`, as the check with these limits does of an answer. */
async function query(t: TestContext, body: unknown, limits: { readonly max?: number; readonly min?: number }) {
  const url = await serve(t, (_, response) => response.end(typeof body === 'string' ? body : JSON.stringify(body)));
  const { max = null, min = null } = limits;
  const check: CheckPlan = { ...COMMON, kind: 'prometheus', url, query: 'x', token: null, max, min };
  const { answer, evidence } = await askCheck(check, ABOUT);
  return `${answer}: ${evidence}`;
}

const vector = (...values: readonly string[]): unknown => ({
  status: 'success',
  data: { resultType: 'vector', result: values.map((value) => ({ metric: {}, value: [1_764_288_000, value] })) },
});

test('each result of a query must be within the limits', async (t) => {
  assert.equal(await query(t, vector('0.02'), { max: 0.05 }), 'yes: 0.02, at most 0.05');
  assert.equal(await query(t, vector('0.02', '0.07'), { max: 0.05 }), 'no: 0.02 to 0.07, at most 0.05');
  assert.equal(await query(t, vector('3'), { min: 4, max: 9 }), 'no: 3, at most 9 and at least 4');
  const scalar = { status: 'success', data: { resultType: 'scalar', result: [1, '4'] } };
  assert.equal(await query(t, scalar, { min: 4 }), 'yes: 4, at least 4');
  assert.equal(await query(t, vector('+Inf'), { max: 1 }), 'unknown: the result is not a number');
});

test('a query without a number is unknown', async (t) => {
  assert.equal(await query(t, vector(), { max: 1 }), 'unknown: the query has no result');
  assert.equal(await query(t, vector('1', 'NaN'), { max: 2 }), 'unknown: the result is not a number');
  assert.match(await query(t, { status: 'success', data: { resultType: 'matrix', result: [] } }, { max: 1 }), /matrix/);
  assert.match(await query(t, { status: 'error', error: 'bad query' }, { max: 1 }), /^unknown: .*bad query/);
  assert.match(await query(t, 'null', { max: 1 }), /^unknown: HTTP status 200/);
  assert.match(await query(t, '<html>', { max: 1 }), /not JSON/);
});

test('the query and the token are sent as Prometheus takes them', async (t) => {
  const seen: unknown[] = [];
  const url = await serve(t, ({ url: path, headers }, response) => {
    seen.push(path, headers.authorization);
    response.end(JSON.stringify(vector('1')));
  });
  const check: CheckPlan = { ...COMMON, kind: 'prometheus', url, query: 'a{b="c d"}', token: 's', max: 1, min: null };
  assert.equal((await askCheck(check, ABOUT)).answer, 'yes');
  assert.deepEqual(seen, ['/api/v1/query?query=a%7Bb%3D%22c+d%22%7D', 'Bearer s']);
});

test('a real Prometheus answers a vector, a scalar, nothing, and an expression that is wrong', async (t) => {
  if (!(await needs(t, 'prometheus'))) return;
  const folder = mkdtempSync(join(tmpdir(), 'prometheus-'));
  const config = join(folder, 'prometheus.yml');
  writeFileSync(config, '{}');
  const port = await freePort();
  const options = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${folder}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const server = spawn('prometheus', options, { stdio: 'ignore' });
  t.after(async () => {
    server.kill('SIGKILL');
    await once(server, 'exit');
    rmSync(folder, { recursive: true });
  });
  const url = `http://127.0.0.1:${port}`;
  const isReady = (): Promise<boolean> =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isReady);
  const ask = async (asked: string): Promise<string> => {
    const check: CheckPlan = { ...COMMON, kind: 'prometheus', url, query: asked, token: null, max: 2, min: null };
    const { answer, evidence } = await askCheck(check, ABOUT);
    return `${answer}: ${evidence}`;
  };
  assert.equal(await ask('vector(2) / vector(1)'), 'yes: 2, at most 2');
  assert.equal(await ask('1 + 2'), 'no: 3, at most 2');
  assert.equal(await ask('vector(0) / vector(0)'), 'unknown: the result is not a number');
  assert.equal(await ask('sum(rate(http_errors_total[5m]))'), 'unknown: the query has no result');
  assert.match(await ask('sum('), /^unknown: HTTP status 400: .*parse error/);
  assert.match(await ask('vector(1)[5m:1m]'), /^unknown: HTTP status 200: a result of type matrix/);
});

test('an HTTP service says yes with 2xx and no with another status; silence is unknown', async (t) => {
  const url = await serve(t, ({ url: path }, response) => {
    if (path === '/silent') return;
    response.statusCode = path === '/ok' ? 204 : 503;
    response.end();
  });
  const ask = async (at: string, deadlineMs = 10_000): Promise<string> => {
    const { answer, evidence } = await askCheck({ ...COMMON, kind: 'http', url: at, token: null, deadlineMs }, ABOUT);
    return `${answer}: ${evidence}`;
  };
  assert.equal(await ask(`${url}/ok`), 'yes: HTTP status 204');
  assert.equal(await ask(`${url}/bad`), 'no: HTTP status 503');
  assert.equal(await ask(`${url}/silent`, 50), 'unknown: no answer within 50 ms');
  const closed = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => closed.once('listening', resolve));
  const { port } = closed.address() as AddressInfo;
  await new Promise((resolve) => closed.close(resolve));
  assert.match(await ask(`http://127.0.0.1:${port}`), /^unknown: not reached: .*ECONNREFUSED/);
});

test('a program says yes with 0, no with 1, and is unknown with any other end', async () => {
  const ask = async (script: string): Promise<string> => {
    const { answer, evidence } = await askCheck({ ...COMMON, kind: 'command', command: ['sh', '-c', script] }, ABOUT);
    return `${answer}: ${evidence}`;
  };
  assert.equal(
    await ask('echo "$SHADOW_PROXY_WORKLOAD in $SHADOW_PROXY_STAGE"'),
    'yes: exit code 0: sessions in shadow',
  );
  assert.equal(await ask('echo too early; exit 1'), 'no: exit code 1: too early');
  assert.equal(await ask('exit 2'), 'unknown: exit code 2');
  assert.equal(await ask('kill -9 $$'), 'unknown: killed by SIGKILL');
});

test('one no closes the gate, and one unknown does where there is no no', () => {
  const yes = { name: 'a', answer: 'yes', evidence: '1' } as const;
  const no = { name: 'b', answer: 'no', evidence: '2' } as const;
  const unknown = { name: 'c', answer: 'unknown', evidence: '3' } as const;
  assert.deepEqual(judgeChecks([yes]), { answer: 'yes', evidence: 'a: 1' });
  assert.deepEqual(judgeChecks([yes, unknown]), { answer: 'unknown', evidence: 'a: 1; c: 3' });
  assert.deepEqual(judgeChecks([yes, no, unknown]), { answer: 'no', evidence: 'a: 1; b: 2; c: 3' });
});

test('a viewer does not wait for a check, and gets what it answered last', async (t) => {
  let asked = 0;
  const url = await serve(t, (_, response) => {
    asked++;
    response.end();
  });
  const plan: CheckPlan[] = [{ ...COMMON, kind: 'http', url, token: null, workloads: ['sessions'] }];
  const checks = new ExternalChecks(() => plan);
  assert.equal(checks.glance({ ...ABOUT, workload: 'default' }), null);
  assert.equal(await checks.ask({ ...ABOUT, workload: 'default' }), null);
  assert.deepEqual(checks.glance(ABOUT), [{ name: 'errors', answer: 'unknown', evidence: 'not asked yet' }]);
  const [{ answer }] = (await checks.ask(ABOUT))!;
  assert.equal(answer, 'yes');
  assert.equal(checks.glance(ABOUT)![0].evidence, 'HTTP status 200');
  assert.equal(asked, 1, 'asked a moment ago');
});
