/** Paths and methods of the admin API: which there are, and what is said of the others. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { ROUTES } from '../../../src/admin/routes.js';
import { Admin } from '../../../src/admin/admin-server.js';

const TOKEN = 'right';

async function start(t: TestContext, token: string | null = TOKEN): Promise<number> {
  const admin = await Admin.start({ host: '127.0.0.1', port: 0, token: () => token, shards: () => [] });
  t.after(() => admin.stop());
  return admin.port;
}

/** The status and the headers of the answer to a request that is sent as it stands. */
function answerTo(port: number, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port }, () => socket.write(request));
    let answer = '';
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString();
      if (!answer.includes('\r\n\r\n')) return;
      socket.destroy();
      resolve(answer);
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('no answer')));
  });
}

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
const allowed = (answer: string): string | undefined => /^allow: (.*)$/im.exec(answer)?.[1]?.trim();

describe('a path that is not in the table', () => {
  const UNKNOWN = [
    '/nowhere',
    '/api',
    '/api/',
    '/api/stage',
    '/api/promote/',
    '/API/promote',
    '/constructor',
    '/__proto__',
    '/toString',
    '//',
  ];

  for (const [who, token, headers] of [
    ['without the token', TOKEN, 'Host: 127.0.0.1'],
    ['with the token', TOKEN, `Host: 127.0.0.1\r\nAuthorization: Bearer ${TOKEN}`],
    ['by a name that is not of loopback', null, 'Host: evil.test'],
    ['from a foreign page', null, 'Host: 127.0.0.1\r\nOrigin: https://evil.test'],
  ] as const)
    test(`is a 404 for every method, ${who}`, async (t) => {
      const port = await start(t, token);
      for (const path of UNKNOWN)
        for (const method of ['GET', 'POST', 'DELETE', 'PUT', 'OPTIONS']) {
          const answer = await answerTo(port, `${method} ${path} HTTP/1.1\r\n${headers}\r\nContent-Length: 0\r\n\r\n`);
          assert.equal(statusOf(answer), 404, `${method} ${path}`);
          assert.equal(allowed(answer), undefined);
        }
    });

  test('is a 404 before its body has come', async (t) => {
    const port = await start(t);
    const request =
      'POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n';
    const answer = await answerTo(port, request);
    assert.equal(statusOf(answer), 404);
    assert.match(answer, /^connection: close$/im);
  });
});

describe('a path of the table', () => {
  test('is there for its methods alone: any other is a 405 that names them', async (t) => {
    const port = await start(t);
    const headers = `Host: 127.0.0.1\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 0`;
    for (const [path, route] of Object.entries(ROUTES))
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        if (Object.hasOwn(route, method)) continue;
        const answer = await answerTo(port, `${method} ${path} HTTP/1.1\r\n${headers}\r\n\r\n`);
        assert.deepEqual(
          [statusOf(answer), allowed(answer)],
          [405, Object.keys(route).join(', ')],
          `${method} ${path}`,
        );
      }
  });

  test('does not list its methods without the token', async (t) => {
    const port = await start(t);
    for (const path of Object.keys(ROUTES)) {
      const answer = await answerTo(port, `PATCH ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
      assert.deepEqual([statusOf(answer), allowed(answer)], [401, undefined], path);
    }
  });

  test('reads a body where it changes something, except to stop a job, and nowhere else', () => {
    const reading = Object.entries(ROUTES).flatMap(([path, route]) =>
      Object.entries(route).flatMap(([method, { schema }]) => (schema === null ? [] : [`${method} ${path}`])),
    );
    assert.deepEqual(reading, [
      'POST /api/promote',
      'POST /api/rollback',
      'POST /api/take-back',
      'POST /api/note',
      'POST /api/wait',
      'POST /api/fence',
      'POST /api/automation',
      'POST /api/accept',
      'POST /api/jobs',
      'PATCH /api/jobs',
    ]);
    const changing = Object.entries(ROUTES).flatMap(([path, route]) =>
      Object.keys(route).flatMap((method) => (['GET', 'HEAD'].includes(method) ? [] : [`${method} ${path}`])),
    );
    assert.deepEqual(changing, [...reading, 'DELETE /api/jobs']);
  });

  test('takes no field that its body does not have, and says which', () => {
    for (const [path, route] of Object.entries(ROUTES))
      for (const { schema } of Object.values(route)) {
        if (schema === null) continue;
        const { success, error } = schema.safeParse({ unheard: 1 });
        assert.equal(success, false, path);
        assert.ok(
          error!.issues.some((issue) => JSON.stringify(issue).includes('unheard')),
          path,
        );
      }
  });
});
