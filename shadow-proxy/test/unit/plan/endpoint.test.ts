/** URLs of servers: their parts, defaults and errors. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  formatUrl,
  interpolate,
  isLoopback,
  parseAddress,
  parseUrl,
  redactSecrets,
  redactUrl,
  UrlError,
} from '../../../src/plan/endpoint.js';

describe('a URL of a server', () => {
  test('is taken apart', () => {
    assert.deepEqual(parseUrl('redis://app:p%40ss@cache.internal:6380/3'), {
      scheme: 'redis',
      username: 'app',
      password: 'p@ss',
      addresses: [{ host: 'cache.internal', port: 6380 }],
      master: null,
      db: 3,
    });
  });

  test('has defaults for all but the host', () => {
    const { addresses, username, password, db } = parseUrl('rediss://cache');
    assert.deepEqual(
      { addresses, username, password, db },
      { addresses: [{ host: 'cache', port: 6379 }], username: null, password: null, db: 0 },
    );
  });

  test('may have a password without a user', () => {
    const { username, password } = parseUrl('redis://:secret@h');
    assert.deepEqual({ username, password }, { username: null, password: 'secret' });
  });

  test('may have an at sign in its password', () => {
    assert.equal(parseUrl('redis://u:a@b@h:1').password, 'a@b');
  });

  test('may have an IPv6 host', () => {
    assert.deepEqual(parseUrl('redis://[::1]:6379').addresses, [{ host: '::1', port: 6379 }]);
  });

  test('names sentinels and the master that they know', () => {
    const url = parseUrl('redis+sentinel://u:p@s1:26379,s2/cache-0/2');
    assert.deepEqual(url.addresses, [
      { host: 's1', port: 26379 },
      { host: 's2', port: 26379 },
    ]);
    assert.equal(url.master, 'cache-0');
    assert.equal(url.db, 2);
  });

  for (const [url, reason] of [
    ['http://h', /not the URL of a server/],
    ['h:6379', /not the URL of a server/],
    ['redis://h:70000', /port that is not a number from 0 to 65535/],
    ['redis://h:x', /invalid host/],
    ['redis://', /invalid host/],
    ['redis://h1,h2', /several hosts/],
    ['redis://h/x', /database that is not a number/],
    ['redis://h/1/2', /too many parts/],
    ['redis+sentinel://s1:26379', /has no master name/],
    ['redis://u:%zz@h', /not part of %XX/],
  ] as const) {
    test(`is refused: ${url}`, () => {
      assert.throws(
        () => parseUrl(url),
        (error) => error instanceof UrlError && reason.test(error.message),
      );
    });
  }

  test('is refused without its password in the message', () => {
    for (const url of [
      'redis://u:hunter2@h:70000',
      'redis://u:hunter2@h1,h2',
      'redis://u:hunter2%zz@h',
      'redos://u:hunter2@h',
    ]) {
      assert.throws(
        () => parseUrl(url),
        (error) => !(error as Error).message.includes('hunter2'),
      );
    }
  });
});

describe('environment variables in a URL', () => {
  test('stand for their raw value in the password, whatever it holds', () => {
    const raw = 'p@s/s:w%rd #?';
    const url = interpolate('redis://app:${PW}@h:6379', { PW: raw });
    assert.equal(parseUrl(url).password, raw);
    assert.deepEqual(parseUrl(url).addresses, [{ host: 'h', port: 6379 }]);
  });

  test('may stand for the host, or for the whole URL', () => {
    assert.deepEqual(parseUrl(interpolate('redis://${HOST}:6379', { HOST: 'cache' })).addresses, [
      { host: 'cache', port: 6379 },
    ]);
    assert.equal(parseUrl(interpolate('${URL}', { URL: 'redis://:pw@h' })).password, 'pw');
  });

  test('must be set', () => {
    assert.throws(() => interpolate('redis://:${NOPE}@h', {}), /environment variable NOPE, which is not set/);
  });
});

describe('a URL for people', () => {
  test('has no password', () => {
    assert.equal(formatUrl(parseUrl('redis://app:hunter2@h:1/2')), 'redis://app:***@h:1/2');
    assert.equal(
      formatUrl(parseUrl('redis+sentinel://:hunter2@s1:1,[::1]:2/m')),
      'redis+sentinel://:***@s1:1,[::1]:2/m',
    );
    assert.equal(formatUrl(parseUrl('redis://h')), 'redis://h:6379');
  });

  test('is redacted inside longer text, and the rest is kept', () => {
    assert.equal(redactUrl('from redis://u:p@ss@h:1 to rediss://h2'), 'from redis://u:***@h:1 to rediss://h2');
    assert.equal(
      redactUrl('{"a":"redis+sentinel://:p@s1,s2/m","b":"x@y"}'),
      '{"a":"redis+sentinel://:***@s1,s2/m","b":"x@y"}',
    );
    assert.equal(redactUrl('redis://h:6379/1'), 'redis://h:6379/1');
    assert.equal(redactUrl("redis://u:it's@h:1"), 'redis://u:***@h:1');
    assert.equal(
      redactUrl(JSON.stringify({ a: 'redis://u:p"q\\@h:1', b: 'x@y' })),
      '{"a":"redis://u:***@h:1","b":"x@y"}',
    );
  });
});

test('what people write down has no passwords in it', () => {
  for (const [text, expected] of [
    ['redis-cli -h h -a s3cret GET k', 'redis-cli -h h -a *** GET k'],
    ["redis-cli --pass 's3 cret' --user u", 'redis-cli --pass *** --user u'],
    ['curl --token=s3cret; REDISCLI_AUTH=s3cret redis-cli PING', 'curl --token=***; REDISCLI_AUTH=*** redis-cli PING'],
    [
      'redis-cli -u redis://u:s3cret@h:1 CONFIG SET requirepass s3cret',
      'redis-cli -u redis://u:***@h:1 CONFIG SET requirepass ***',
    ],
    ['keydb-cli auth app s3cret | tee x', 'keydb-cli auth *** | tee x'],
    ['HELLO 3 AUTH app s3cret', 'HELLO 3 AUTH ***'],
    ['redis-cli ACL SETUSER app on >s3cret ~app:* +@all', 'redis-cli ACL SETUSER app on >*** ~app:* +@all'],
    ["ACL SETUSER app '>s3cret' '<older' on", "ACL SETUSER app '>***' '<***' on"],
    ['the auth cache is ready; 3 > 2', 'the auth cache is ready; 3 > 2'],
    [
      'npx --no-install shadow-compare promote sessions --to live --percent 10',
      'npx --no-install shadow-compare promote sessions --to live --percent 10',
    ],
  ]) {
    assert.equal(redactSecrets(text), expected);
  }
});

test('an address is a host and a port', () => {
  assert.deepEqual(parseAddress('127.0.0.1:9400'), { host: '127.0.0.1', port: 9400 });
  assert.deepEqual(parseAddress('[::1]:9400'), { host: '::1', port: 9400 });
  assert.throws(() => parseAddress('127.0.0.1'), /has no port/);
  assert.throws(() => parseAddress(':9400'), UrlError);
});

test('loopback is 127.0.0.0/8, ::1 and localhost, and nothing that looks like it', () => {
  for (const host of ['127.0.0.1', '127.9.9.9', '::1', 'localhost']) assert.ok(isLoopback(host), host);
  for (const host of ['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.evil.test', 'localhost.evil.test', ''])
    assert.ok(!isLoopback(host), host);
});
