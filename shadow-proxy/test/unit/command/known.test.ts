/** Which servers are newer than this release knows, and what is said of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WANTED } from '../../../../verification/matrix/servers.js';
import { isNewer, NEWEST_KNOWN, newerServer, rdbVersionOf, READABLE_RDB } from '../../../src/command/known.js';
import { compareVersions, type Software } from '../../../src/command/release.js';
import { NEWEST_VERSION, OLDEST_VERSION, VALKEY_VERSIONS } from '../../../src/copy/rdb/types.js';

const newestRedis = NEWEST_KNOWN.redis;
const [major, minor] = newestRedis.split('.').map(Number);
const redis = (version: string): Software => ({ name: 'redis', version });

test('a patch release of what is known is known; a later minor or major release is not', () => {
  for (const version of ['', '6.2.0', '7.4.1', newestRedis, `${newestRedis}.99`])
    assert.equal(newerServer(redis(version), null), null, version);
  for (const version of [`${major}.${minor + 2}.0`, `${major + 1}.0.0`]) assert.ok(isNewer(redis(version)), version);
  assert.ok(isNewer({ name: 'valkey', version: '10.0.0' }));
  assert.ok(!isNewer({ name: 'valkey', version: NEWEST_KNOWN.valkey }));
  assert.ok(isNewer({ name: 'keydb', version: '6.4.0' }));
});

test('a server that is newer is named with its release, and with what its payloads are', () => {
  const unreadable = newerServer(redis('99.2.1'), 4_000)!;
  assert.equal(unreadable.name, 'Redis 99.2');
  assert.equal(
    unreadable.evidence,
    `Redis 99.2: not known to this release, whose newest is Redis ${newestRedis}; its DUMP is RDB 4000, which this release cannot read: only plain strings can be copied from it`,
  );
  assert.match(newerServer(redis('99.2.1'), 12)!.evidence, /its DUMP is RDB 12, which this release reads$/);
  assert.match(newerServer(redis('99.2.1'), null)!.evidence, /does not tell the RDB version.*FUNCTION DUMP is refused/);
});

test('the RDB version is in the footer of a payload without a key', () => {
  // FUNCTION DUMP of a Redis 7.0 without libraries.
  assert.equal(rdbVersionOf(Buffer.from('0a00a6f1cd8b5ff7b56a', 'hex')), 10);
  assert.equal(rdbVersionOf(null), null);
  assert.equal(rdbVersionOf(Buffer.alloc(9)), null);
});

test('what is known is what the code reads, and what the matrix runs', () => {
  const versions = Array.from({ length: NEWEST_VERSION - OLDEST_VERSION + 1 }, (_, i) => OLDEST_VERSION + i);
  assert.deepEqual(READABLE_RDB, [...versions, ...VALKEY_VERSIONS]);
  for (const name of ['redis', 'valkey'] as const) {
    const run = WANTED.filter((each) => each.name === name).map(({ version }) => version);
    assert.equal(run.sort(compareVersions).at(-1), NEWEST_KNOWN[name]);
  }
});
