/** Which versions are used, and what they have. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { continues, softwareOf } from '../../../src/command/release.js';
import { identityOf, isSince, tooOld } from '../../../src/upstream/identity.js';

test('a server that is older than 6.2 is refused by its version, with what to do', () => {
  assert.match(tooOld('source', '6.0.16')!, /the source is Redis 6\.0\.16.*oldest.*6\.2.*upgrade the source first/);
  assert.match(tooOld('target', '5.0.3')!, /the target is Redis 5\.0\.3/);
  for (const version of ['6.2.0', '6.3.4', '7.0.15', '10.0.0', '']) assert.equal(tooOld('source', version), null);
  assert.deepEqual(
    ['7.0.15', '7.2', '7.10.1', '8.0.0'].map((version) => isSince(version, [7, 2])),
    [false, true, true, true],
  );
});

test('a cluster is seen by the name that each server gives its mode', () => {
  for (const field of ['redis_mode', 'server_mode'])
    assert.equal(identityOf(new Map([[field, 'cluster']]), new Map()).mode, 'cluster', field);
  assert.equal(identityOf(new Map(), new Map()).mode, '');
});

test('Valkey has its own version, and what Redis 7.2 had', () => {
  const valkey = softwareOf(
    new Map([
      ['redis_version', '7.2.4'],
      ['valkey_version', '8.1.1'],
    ]),
    false,
  );
  assert.deepEqual(valkey, { name: 'valkey', version: '8.1.1' });
  assert.deepEqual(softwareOf(new Map([['redis_version', '6.3.4']]), true), { name: 'keydb', version: '6.3.4' });
  const redis = (version: string) => ({ name: 'redis' as const, version });
  assert.deepEqual(
    [redis('7.2.6'), redis('7.4.1'), { name: 'valkey' as const, version: '9.1.0' }].map((release) =>
      continues(valkey, release),
    ),
    [true, false, false],
  );
  assert.equal(continues(redis('8.0.2'), redis('7.4.1')), true);
});
