/** Which differences of settings clients can see. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VISIBLE_SETTINGS } from '../../../src/plan/plan.js';
import { compareSettings, remedyOf, type SettingsComparison } from '../../../src/upstream/settings.js';

const MIB = 1 << 20;
const EQUAL = Object.fromEntries(VISIBLE_SETTINGS.map((name) => [name, '1']));

const compared = (source: Record<string, string>, target: Record<string, string>): SettingsComparison => {
  const of = (values: Record<string, string>) => ({ values: new Map(Object.entries(values)), refusal: null });
  return compareSettings({ source: of({ ...EQUAL, ...source }), target: of({ ...EQUAL, ...target }) }, 256 * MIB);
};
const visible = (source: Record<string, string>, target: Record<string, string>): string[] =>
  compared(source, target).visible.map(({ name }) => name);

test('every setting that clients can see is compared, and each difference has a command that removes it', () => {
  for (const name of VISIBLE_SETTINGS) {
    const values = name === 'client-output-buffer-limit' ? ['normal 9 0 0', 'normal 5 0 0'] : ['9', '5'];
    const [difference] = compared({ [name]: values[0] }, { [name]: values[1] }).visible;
    assert.deepEqual(difference, { name, source: values[0], target: values[1] });
    assert.ok(remedyOf(difference).includes(values[0]), remedyOf(difference));
  }
  assert.deepEqual(compared({}, {}), {
    visible: [],
    tuning: [],
    unread: [],
    refusals: { source: null, target: null },
  });
});

test('an eviction policy that only Redis 8.6 has comes with the nearest one of other servers', () => {
  const [difference] = compared({ 'maxmemory-policy': 'volatile-lrm' }, { 'maxmemory-policy': 'noeviction' }).visible;
  assert.match(
    remedyOf(difference),
    /^CONFIG SET maxmemory-policy "volatile-lrm"; a target before Redis 8\.6 .* "volatile-lru" is the nearest/,
  );
  const [known] = compared({ 'maxmemory-policy': 'volatile-lru' }, { 'maxmemory-policy': 'noeviction' }).visible;
  assert.equal(remedyOf(known), 'CONFIG SET maxmemory-policy "volatile-lru"');
});

test('more connections on the target are no difference, and letters of events have no order', () => {
  assert.deepEqual(visible({ maxclients: '1000' }, { maxclients: '10000' }), []);
  assert.deepEqual(visible({ maxclients: '10000' }, { maxclients: '1000' }), ['maxclients']);
  assert.deepEqual(visible({ 'notify-keyspace-events': 'gxE' }, { 'notify-keyspace-events': 'Exg' }), []);
  assert.deepEqual(visible({ 'notify-keyspace-events': 'gxE' }, { 'notify-keyspace-events': 'gE' }), [
    'notify-keyspace-events',
  ]);
});

test('limits of output buffers count for the classes of clients, and below the limit of the proxy', () => {
  const limits = (source: string, target: string): unknown =>
    compared({ 'client-output-buffer-limit': source }, { 'client-output-buffer-limit': target }).visible.map((each) => [
      each.source,
      each.target,
    ]);
  const rest = 'slave 268435456 67108864 60 pubsub 33554432 8388608 60';
  assert.deepEqual(limits(`normal 0 0 0 ${rest}`, `normal ${256 * MIB} ${64 * MIB} 60 ${rest}`), []);
  assert.deepEqual(limits(`normal 0 0 0 ${rest}`, `normal ${100 * MIB} 0 0 ${rest}`), [
    ['normal 0 0 0', `normal ${100 * MIB} 0 0`],
  ]);
  assert.deepEqual(limits(`normal ${100 * MIB} 0 0 ${rest}`, `normal 0 0 0 ${rest}`), []);
  assert.deepEqual(limits(`normal 0 0 0 ${rest}`, 'normal 0 0 0 slave 1 1 1 pubsub 1048576 0 0'), [
    ['pubsub 33554432 8388608 60', 'pubsub 1048576 0 0'],
  ]);
});

test('tuning differs without being visible, and a setting that one server does not show is named', () => {
  assert.deepEqual(compared({ hz: '10', save: '' }, { hz: '50', save: '' }).tuning, [
    { name: 'hz', source: '10', target: '50' },
  ]);
  const values = new Map(Object.entries(EQUAL));
  const fewer = new Map(values);
  fewer.delete('timeout');
  const { unread } = compareSettings(
    { source: { values: fewer, refusal: null }, target: { values, refusal: null } },
    256 * MIB,
  );
  assert.deepEqual(unread, [{ name: 'timeout', side: 'source' }]);
});
