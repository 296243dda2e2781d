/** The admin API over HTTP, with the answers of a shard that does not run. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { Admin, type AdminOptions } from '../../../src/admin/admin-server.js';
import { StageError } from '../../../src/stages/stage-change.js';
import type { ShardControl } from '../../../src/admin/shard-control.js';
import { pageFile } from '../../../src/page/files.js';
import { shardSnapshot } from '../../support/snapshots.js';
import { stillShard } from '../../support/still-shard.js';

async function start(
  t: TestContext,
  shards: readonly ShardControl[],
  options: Partial<AdminOptions> = {},
): Promise<number> {
  const admin = await Admin.start({ host: '127.0.0.1', port: 0, token: () => null, shards: () => shards, ...options });
  t.after(() => admin.stop());
  return admin.port;
}

interface Answer {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly body: any;
}

/** A request with any headers at all, which fetch would not send. */
function ask(
  port: number,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const json = /json/.test(response.headers['content-type'] ?? '') && text !== '';
        resolve({
          status: response.statusCode!,
          headers: response.headers,
          text,
          body: json ? JSON.parse(text) : null,
        });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const JSON_TYPE = { 'content-type': 'application/json' };
const move = (port: number, body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  ask(
    port,
    'POST',
    '/api/promote',
    { ...JSON_TYPE, ...headers },
    typeof body === 'string' ? body : JSON.stringify(body),
  );

describe('the admin HTTP', () => {
  test('answers on its four pages', async (t) => {
    const port = await start(t, [stillShard('a'), stillShard('b')]);
    assert.deepEqual((await ask(port, 'GET', '/healthz')).body, { ok: true });
    assert.deepEqual((await ask(port, 'GET', '/readyz')).body, { ready: true, notReady: [] });
    const status = await ask(port, 'GET', '/api/status?x=1');
    assert.deepEqual(status.body, {
      version: 1,
      migration: 'migration',
      shards: [shardSnapshot({ name: 'a' }), shardSnapshot({ name: 'b' })],
    });
    const metrics = await ask(port, 'GET', '/metrics');
    assert.match(String(metrics.headers['content-type']), /^text\/plain; version=0\.0\.4/);
    assert.match(metrics.text, /^shadow_proxy_operations_total\{shard="b"\} 1000$/m);
    assert.deepEqual(
      [(await ask(port, 'HEAD', '/metrics')).status, (await ask(port, 'HEAD', '/metrics')).text],
      [200, ''],
    );
  });

  test('returns evidence and series of each shard, or of the shard that is named', async (t) => {
    const port = await start(t, [stillShard('a'), stillShard('b')]);
    assert.deepEqual(
      (await ask(port, 'GET', '/api/evidence')).body.shards.map(({ shard }: { shard: string }) => shard),
      ['a', 'b'],
    );
    const { body } = await ask(port, 'GET', '/api/series?shard=b&since=17');
    assert.deepEqual([body.everyMs, body.series.length, body.series[0].shard, body.series[0].at], [5_000, 1, 'b', []]);
    assert.equal((await ask(port, 'GET', '/api/series?since=yesterday')).status, 400);
    assert.equal((await ask(port, 'GET', '/api/series?shard=z')).status, 404);
  });

  test('is not ready while a shard is not, or while there is none', async (t) => {
    const [a, b] = [stillShard('a'), stillShard('b')];
    b.isReady = false;
    const answer = await ask(await start(t, [a, b]), 'GET', '/readyz');
    assert.deepEqual([answer.status, answer.body], [503, { ready: false, notReady: ['b'] }]);
    assert.equal((await ask(await start(t, []), 'GET', '/readyz')).status, 503);
  });

  test('says what is there when asked for something else', async (t) => {
    const port = await start(t, [stillShard('a')]);
    const missing = await ask(port, 'GET', '/api/stages');
    assert.equal(missing.status, 404);
    assert.match(missing.body.error.message, /there is no path \/api\/stages\. The paths: .*\/api\/status/);
    const method = await ask(port, 'POST', '/api/status');
    assert.deepEqual([method.status, method.headers.allow], [405, 'GET, HEAD']);
    assert.equal((await ask(port, 'GET', '/api/promote')).status, 405);
    assert.equal((await ask(port, 'GET', '//')).status, 404);
  });

  test('says so where its address is taken', async (t) => {
    const port = await start(t, []);
    await assert.rejects(Admin.start({ host: '127.0.0.1', port, token: () => null, shards: () => [] }), {
      code: 'listen',
      message: `the admin address 127.0.0.1:${port} is taken: set another admin.listen (each process needs its own)`,
    });
  });

  test('does not open beyond loopback without a token', async () => {
    await assert.rejects(
      Admin.start({ host: '0.0.0.0', port: 0, token: () => null, shards: () => [] }),
      /beyond loopback: set admin\.token/,
    );
  });

  test('stops while a client holds a connection open', async () => {
    const admin = await Admin.start({ host: '127.0.0.1', port: 0, token: () => null, shards: () => [] });
    await (await fetch(`http://127.0.0.1:${admin.port}/healthz`)).text();
    await admin.stop();
    await admin.stop();
  });
});

describe('who may ask:', () => {
  test('a load balancer may probe without a token, and learns the status code alone', async (t) => {
    const [a, b] = [stillShard('a'), stillShard('b')];
    b.isReady = false;
    const port = await start(t, [a, b], { token: () => 'right' });
    const probe = await ask(port, 'GET', '/readyz');
    assert.deepEqual([probe.status, probe.body], [503, { ok: false }]);
    const alive = await ask(port, 'GET', '/healthz');
    assert.deepEqual([alive.status, alive.body], [200, { ok: true }]);
    const standby = await start(t, [], { token: () => 'right', waiting: () => ['a'] });
    const waits = await ask(standby, 'GET', '/readyz');
    assert.deepEqual([waits.status, waits.body], [503, { ok: false, reason: 'standby' }]);
    const known = await ask(port, 'GET', '/readyz', { authorization: 'Bearer right' });
    assert.deepEqual([known.status, known.body], [503, { ready: false, notReady: ['b'] }]);
    assert.equal((await ask(port, 'GET', '/readyz', { authorization: 'Bearer wrong' })).status, 401);
  });

  test('with a token, only who has it, on every page', async (t) => {
    const port = await start(t, [stillShard('a')], { token: () => 'right' });
    for (const path of ['/metrics', '/api/state', '/api/status']) {
      for (const headers of [
        {},
        { authorization: 'Bearer wrong' },
        { authorization: 'Basic right' },
        { authorization: 'Bearer ' },
      ] as Record<string, string>[]) {
        const answer = await ask(port, 'GET', path, headers);
        assert.equal(answer.status, 401, `${path} ${JSON.stringify(headers)}`);
        assert.equal(answer.headers['www-authenticate'], 'Bearer');
        assert.doesNotMatch(answer.text, /right/);
      }
    }
    assert.equal((await ask(port, 'GET', '/api/status', { authorization: 'Bearer right' })).status, 200);
    assert.equal(
      (await ask(port, 'GET', '/api/status', { authorization: 'bearer right', host: 'proxy.internal' })).status,
      200,
    );
  });

  test('a token that changed holds from the next request on', async (t) => {
    let token = 'old';
    const port = await start(t, [stillShard('a')], { token: () => token });
    token = 'new';
    assert.equal((await ask(port, 'GET', '/healthz', { authorization: 'Bearer old' })).status, 401);
    assert.equal((await ask(port, 'GET', '/healthz', { authorization: 'Bearer new' })).status, 200);
  });

  test('without one, only who calls it by a name of loopback', async (t) => {
    const shard = stillShard('a');
    const port = await start(t, [shard]);
    for (const host of ['evil.test', `evil.test:${port}`, '127.0.0.1.evil.test', '10.0.0.1', 'localhost@evil.test']) {
      const answer = await ask(port, 'GET', '/api/status', { host });
      assert.equal(answer.status, 403, host);
      assert.equal(answer.body.error.code, 'forbidden-host');
    }
    assert.equal((await move(port, { workload: 'w', to: 'live' }, { host: 'evil.test' })).status, 403);
    assert.deepEqual(shard.asked, []);
    for (const host of [`127.0.0.1:${port}`, 'localhost', `localhost:${port}`, `[::1]:${port}`]) {
      assert.equal((await ask(port, 'GET', '/api/status', { host })).status, 200, host);
    }
  });

  test('no other web page, for anything but reading, with the token and without', async (t) => {
    const shard = stillShard('a');
    for (const token of [null, 'right']) {
      const port = await start(t, [shard], { token: () => token });
      const own = { ...(token !== null && { authorization: `Bearer ${token}` }), host: `localhost:${port}` };
      const foreign: Record<string, string>[] = [
        { origin: 'https://evil.test' },
        { origin: 'null' },
        { origin: `http://localhost:${port + 1}` },
        { origin: `http://127.0.0.1:${port}` },
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site', origin: `http://localhost:${port}` },
      ];
      for (const headers of foreign) {
        for (const [method, path] of [
          ['POST', '/api/promote'],
          ['POST', '/api/rollback'],
          ['POST', '/api/accept'],
          ['DELETE', '/api/jobs'],
          ['OPTIONS', '/api/promote'],
        ] as const) {
          const answer = await ask(
            port,
            method,
            path,
            { ...own, ...JSON_TYPE, ...headers },
            method === 'POST' ? '{"workload":"w","to":"live"}' : undefined,
          );
          assert.deepEqual(
            [answer.status, answer.body.error.code],
            [403, 'forbidden-origin'],
            `${method} ${path} ${JSON.stringify(headers)}`,
          );
          assert.equal(answer.headers['access-control-allow-origin'], undefined);
        }
      }
      assert.deepEqual(shard.asked, []);
      assert.equal(
        (
          await move(
            port,
            { workload: 'w', to: 'live' },
            { ...own, origin: `http://localhost:${port}`, 'sec-fetch-site': 'same-origin' },
          )
        ).status,
        200,
      );
      shard.asked.length = 0;
    }
  });

  test('everybody for the files of the page, which have nothing of the shards in them; nobody for what is behind it', async (t) => {
    const port = await start(t, [stillShard('name-of-the-shard')], {
      token: () => 'a-token-of-nobody',
      page: pageFile,
    });
    const index = await ask(port, 'GET', '/', { host: 'proxy.internal' });
    assert.equal(index.status, 200);
    assert.match(
      String(index.headers['content-security-policy']),
      /^default-src 'none'; script-src 'self' 'sha256-[\w+/=]+'; style-src 'self'; connect-src 'self'; .*form-action 'none'; frame-ancestors 'none'$/,
    );
    const files = [
      ...index.text.matchAll(/(?:src|href)="(\/[^"]+)"/g),
      ...index.text.matchAll(/"(\/assets\/[^"]+)"/g),
    ].map(([, path]) => path);
    assert.ok(files.length >= 5, files.join());
    for (const path of ['/', ...files, '/assets/telemetry/snapshot.js']) {
      const { status, text, headers } = await ask(port, 'GET', path, { host: 'proxy.internal' });
      assert.equal(status, 200, path);
      assert.ok(!text.includes('name-of-the-shard') && !text.includes('a-token-of-nobody'), path);
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal((await ask(port, 'POST', path)).status, 405, path);
    }
    for (const path of ['/api/status', '/api/evidence', '/api/series', '/api/history', '/metrics']) {
      assert.equal((await ask(port, 'GET', path)).status, 401, path);
    }
    for (const path of ['/assets/../admin/server.js', '/assets/admin/server.js']) {
      assert.equal((await ask(port, 'GET', path)).status, 404, path);
    }
    assert.equal(
      (await ask(await start(t, [], { page: pageFile }), 'GET', '/', { host: 'evil.test' })).status,
      403,
      'a name that is resolved to loopback',
    );
  });

  test('not a form of a web page', async (t) => {
    const shard = stillShard('a');
    const port = await start(t, [shard]);
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'application/jsonx',
    ]) {
      assert.equal((await move(port, { workload: 'w', to: 'live' }, { 'content-type': type })).status, 415, type);
    }
    assert.deepEqual(shard.asked, []);
  });
});

describe('a change of stage', () => {
  test('reaches the shard that is named', async (t) => {
    const [a, b] = [stillShard('a'), stillShard('b')];
    const wanted = { workload: 'sessions', to: 'live', percent: 5, force: true, reason: 'now' };
    const answer = await move(await start(t, [a, b]), { shard: 'b', ...wanted });
    assert.equal(answer.status, 200);
    assert.deepEqual(
      answer.body.promotions.map(({ shard, to }: { shard: string; to: object }) => [shard, to]),
      [['b', { stage: 'live', percent: 5 }]],
    );
    assert.deepEqual([a.asked, b.asked], [[], [wanted]]);
  });

  test('reaches every shard in turn where none is named', async (t) => {
    const answer = await move(await start(t, [stillShard('a'), stillShard('b')]), { workload: 'w', to: 'shadow' });
    assert.deepEqual(
      answer.body.promotions.map(({ shard }: { shard: string }) => shard),
      ['a', 'b'],
    );
  });

  test('ends at the first shard that refuses, and those before it go back', async (t) => {
    const refusing = stillShard('b', () => {
      throw new StageError('not-clean', 'the mirror lacks 3 effects', { keys: 3 });
    });
    const [first, last] = [stillShard('a'), stillShard('c')];
    const answer = await move(await start(t, [first, refusing, last]), { workload: 'sessions', to: 'dualwrite' });
    assert.equal(answer.status, 409);
    assert.deepEqual(answer.body.error, {
      code: 'not-clean',
      message: 'b: the mirror lacks 3 effects; a went back to the stage before',
      details: { keys: 3 },
    });
    assert.deepEqual([first.back, last.asked], [['dualwrite', 'off'], []]);
  });

  for (const [code, status] of [
    ['unknown-workload', 404],
    ['not-adjacent', 409],
    ['no-return', 409],
    ['busy', 409],
    ['refused', 409],
    ['deadline', 504],
  ] as const) {
    test(`that is refused as ${code} is answered with ${status}`, async (t) => {
      const shard = stillShard('a', () => {
        throw new StageError(code, 'because');
      });
      const answer = await move(await start(t, [shard]), { workload: 'w', to: 'live' });
      assert.deepEqual(
        [answer.status, answer.body.error.code, answer.body.error.message],
        [status, code, 'a: because'],
      );
    });
  }

  test('that breaks is answered with 500, not with a hang', async (t) => {
    const shard = stillShard('a', () => {
      throw new TypeError('oops');
    });
    const answer = await move(await start(t, [shard]), { workload: 'w', to: 'live' });
    assert.deepEqual([answer.status, answer.body.error.code], [500, 'internal']);
  });

  test('is refused with the reason where the request is wrong', async (t) => {
    const shard = stillShard('a');
    const port = await start(t, [shard]);
    for (const [body, status, expected] of [
      ['{', 400, /no JSON/],
      ['null', 400, /the body/],
      [{ workload: 'w', to: 'lives' }, 400, /to: .*"off"\|"dualwrite"/],
      [{ to: 'live' }, 400, /workload/],
      [{ workload: 'w', to: 'live', percent: 101 }, 400, /percent/],
      [{ workload: 'w', to: 'live', forced: true }, 400, /forced/],
      [{ workload: 'w', to: 'live', shard: 'z' }, 404, /there is no shard z here\. The shards: a/],
      [`"${'x'.repeat(100_000)}"`, 413, /over 65536 bytes/],
    ] as const) {
      const answer = await move(port, body);
      assert.equal(answer.status, status, JSON.stringify(body).slice(0, 80));
      assert.match(answer.body.error.message, expected);
    }
    assert.deepEqual(shard.asked, []);
  });
});

test('one connection more than 256 is closed, and the next is served when another has left', async () => {
  const admin = await Admin.start({ host: '127.0.0.1', port: 0, token: () => null, shards: () => [] });
  const open = async (): Promise<Socket> => {
    const socket = connect(admin.port, '127.0.0.1').on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  const ask = async (socket: Socket): Promise<string> => {
    socket.write('GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
    let said = '';
    for await (const chunk of socket.setEncoding('utf8')) if ((said += chunk as string).includes('\r\n\r\n')) break;
    return said.split('\r\n', 1)[0]!;
  };
  const idle: Socket[] = [];
  try {
    for (let i = 0; i < 256; i++) idle.push(await open());
    assert.equal(await ask(await open()), '', 'one too many');
    idle.pop()!.destroy();
    let said = '';
    while (said === '') said = await ask(await open());
    assert.equal(said, 'HTTP/1.1 200 OK');
  } finally {
    for (const socket of idle) socket.destroy();
    await admin.stop();
  }
});
