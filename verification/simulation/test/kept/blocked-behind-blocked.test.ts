/** Found in profile `taken` (seed 107): a client that was woken by a blocking command had no place in the order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { End } from '../../world/network.js';
import { KeptWorld } from '../../kept/world.js';

test('A client that a blocking command wakes is mirrored right behind that command', () =>
  KeptWorld.run(async (kept) => {
    const [first, second, writer] = [await kept.client(), await kept.client(), await kept.client()];
    const ports = new Map<string, number>();
    kept.source.onCommand = (address, [name, key]) => {
      ports.set(`${name} ${key}`, Number(address.split(':')[1]));
    };
    const serverEnd = (command: string): End => kept.endOf(kept.source, ports.get(command)!).other;
    // The second client's private connection is open, and free, before the first one has its own.
    second.send('BLPOP nothing 0.05');
    await kept.pass(10);
    first.send('BRPOPLPUSH to to 0');
    await kept.until(() => second.replies.length > 0, 'the time is over');
    // The attempt without blocking finds nothing. The command itself reaches the server behind what the proxy asks.
    second.send('BRPOPLPUSH from to 0');
    await kept.pass(0.05);
    writer.send('LPUSH from x');
    serverEnd('BLPOP nothing').silence(5);
    await kept.until(() => writer.replies.length > 0, 'the element is there');
    await kept.pass(1);
    // The reply to the first client is later than that to the second, and than the next push.
    serverEnd('BRPOPLPUSH to').other.silence(10);
    writer.send('LPUSH to y');
    await kept.until(() => first.replies.length > 0 && writer.replies.length > 1, 'both have their replies');
    assert.deepEqual([first.replies, second.replies.slice(1), writer.replies], [['$x'], ['$x'], [1, 2]]);
    await kept.until(() => kept.isClean, 'the workload is clean');
    assert.deepEqual(kept.values('0 to'), [
      ['y', 'x'],
      ['y', 'x'],
    ]);
  }));
