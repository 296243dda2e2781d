/** What a Sentinel knows after each look at the lease, and what it publishes, on a clock that the test moves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Sight } from '../../../src/lease/ownership.js';
import { idOf, Masters } from '../../../src/sentinel/masters.js';
import { FakeClock } from '../../support/fake-clock.js';

const clock = FakeClock.install();

const OWN = { host: '10.0.0.1', port: 26379 };

function setting() {
  const events: string[] = [];
  const masters = new Masters(
    'test',
    {
      announce: OWN,
      masters: [{ name: 'main', shard: 'a', announce: { host: '10.0.0.1', port: 6379 } }],
    },
    (channel, message) => events.push(`${channel} ${message}`),
  );
  /** The events since the last call. */
  const published = (): string[] => events.splice(0);
  const address = (): string | null => {
    const master = masters.byName('main');
    return master === undefined ? null : `${master.address.host}:${master.address.port}`;
  };
  return { masters, published, address };
}

const seen = (process: string, service: string, isDown = false): Sight => ({
  holder: { process, places: { service, sentinel: '' } },
  isDown,
});
const NOBODY: Sight = { holder: null, isDown: true };
const RELEASED: Sight = { holder: null, isDown: false };

test('a master is known from the first look that shows its address', () => {
  const { masters, published, address } = setting();
  for (const sight of [NOBODY, RELEASED, seen('one', ''), seen('one', 'no address')]) masters.looked('a', sight);
  masters.looked('another', seen('one', '10.0.0.9:6379'));
  assert.deepEqual([masters.all, address(), published()], [[], null, []]);
  masters.looked('a', seen('one', '10.0.0.1:6379'));
  assert.equal(address(), '10.0.0.1:6379');
  assert.deepEqual(published(), ['+monitor master main 10.0.0.1 6379 quorum 1']);
  masters.looked('a', seen('one', '10.0.0.1:6379'));
  assert.deepEqual(published(), []);
});

test('a takeover is a switch as soon as the new process says where it serves, and not before', () => {
  const { masters, published, address } = setting();
  masters.looked('a', seen('one', '10.0.0.1:6379'));
  published();
  masters.looked('a', NOBODY);
  masters.looked('a', NOBODY);
  assert.deepEqual(published(), ['+sdown master main 10.0.0.1 6379', '+odown master main 10.0.0.1 6379 #quorum 1/1']);
  masters.looked('a', seen('two', ''));
  assert.deepEqual([address(), published()], ['10.0.0.1:6379', []], 'the last address is the answer');
  assert.notEqual(masters.byName('main')!.downSince, null);
  masters.looked('a', seen('two', '10.0.0.2:6380'));
  assert.deepEqual(published(), ['+switch-master main 10.0.0.1 6379 10.0.0.2 6380']);
  const { downSince, epoch } = masters.byName('main')!;
  assert.deepEqual([address(), downSince, epoch], ['10.0.0.2:6380', null, 1]);
});

test('a process that hands over is not down', () => {
  const { masters, published } = setting();
  masters.looked('a', seen('one', '10.0.0.1:6379'));
  published();
  masters.looked('a', RELEASED);
  masters.looked('a', seen('two', '[fd00::2]:6379'));
  assert.deepEqual(published(), ['+switch-master main 10.0.0.1 6379 fd00::2 6379']);
});

test('a process that was silent and goes on is up again', async () => {
  const { masters, published } = setting();
  masters.looked('a', seen('one', '10.0.0.1:6379'));
  published();
  const { since } = masters.byName('main')!;
  await clock.advance(5_000);
  masters.looked('a', seen('one', '10.0.0.1:6379', true));
  const silent = masters.byName('main')!;
  assert.deepEqual(
    [silent.downSince, silent.seenAt],
    [since + 5_000, since],
    'it was seen when it last sent something',
  );
  await clock.advance(1_000);
  masters.looked('a', seen('one', '10.0.0.1:6379'));
  assert.deepEqual(published(), [
    '+sdown master main 10.0.0.1 6379',
    '+odown master main 10.0.0.1 6379 #quorum 1/1',
    '-sdown master main 10.0.0.1 6379',
    '-odown master main 10.0.0.1 6379',
  ]);
  const { downSince, seenAt, epoch } = masters.byName('main')!;
  assert.deepEqual([downSince, seenAt, epoch], [null, since + 6_000, 0]);
});

test('a takeover at the same address is no switch: the master was started again', () => {
  const { masters, published } = setting();
  masters.looked('a', seen('one', '10.0.0.1:6379'));
  const { id } = masters.byName('main')!;
  masters.looked('a', NOBODY);
  published();
  masters.looked('a', seen('two', '10.0.0.1:6379'));
  assert.deepEqual(published(), [
    '+reboot master main 10.0.0.1 6379',
    '-sdown master main 10.0.0.1 6379',
    '-odown master main 10.0.0.1 6379',
  ]);
  assert.notEqual(masters.byName('main')!.id, id);
});

test('other Sentinels come and go, and this one is not among them', () => {
  const { masters, published } = setting();
  masters.discovered('a', ['10.0.0.1:26379', '10.0.0.2:26379']);
  assert.deepEqual(published(), []);
  masters.looked('a', seen('one', '10.0.0.1:6379'));
  const [second, third] = ['10.0.0.2', '10.0.0.3'].map((host) => idOf('test', { host, port: 26379 }));
  const at = '@ main 10.0.0.1 6379';
  assert.deepEqual(published(), [
    '+monitor master main 10.0.0.1 6379 quorum 1',
    `+sentinel sentinel ${second} 10.0.0.2 26379 ${at}`,
  ]);
  masters.discovered('a', ['10.0.0.2:26379', '10.0.0.3:26379', '10.0.0.3:26379', 'no address']);
  assert.deepEqual(published(), [`+sentinel sentinel ${third} 10.0.0.3 26379 ${at}`]);
  masters.discovered('a', ['10.0.0.3:26379']);
  assert.deepEqual(published(), [`+sdown sentinel ${second} 10.0.0.2 26379 ${at}`]);
  assert.deepEqual(
    masters.byName('main')!.others.map(({ id }) => id),
    [third],
  );
  masters.looked('a', seen('two', '10.0.0.3:6379'));
  assert.deepEqual(
    masters.byName('main')!.others.map(({ id }) => id),
    [third],
    'a takeover does not forget them',
  );
  assert.equal(masters.id, idOf('test', OWN));
  assert.match(masters.id, /^[0-9a-f]{40}$/);
});

test('it says that it does not see the lease when no server has shown it for 25 s', async () => {
  const { masters } = setting();
  masters.looked('a', seen('one', '10.0.0.1:6379'));
  await clock.advance(24_999);
  assert.equal(masters.sees(masters.byName('main')!), true);
  await clock.advance(1);
  assert.equal(masters.sees(masters.byName('main')!), false);
  masters.looked('a', NOBODY);
  assert.equal(masters.sees(masters.byName('main')!), true, 'that nobody has it was seen, too');
});
