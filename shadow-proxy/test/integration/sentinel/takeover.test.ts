/**
 * Clients that know only the Sentinels go on after takeovers, and lose nothing.
 *
 * Needs real processes: ioredis and node-redis find the proxy that takes over, by its Sentinel.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';
import { addressOf, answersWith, assertGoesOn, CLIENTS, MASTER, withSeats, Writer } from './proxies.js';

/** A client that is subscribed to all events. `events` are those that came so far, without the IDs of Sentinels. */
async function listenTo(port: number): Promise<{ readonly events: () => string[]; close(): void }> {
  const wire = await Wire.open({ port });
  wire.send('PSUBSCRIBE', '*');
  await wire.frame();
  const shown = (frame: string): string => {
    const [, , , , , , channel, , message] = frame.split('\r\n');
    return `${channel} ${message}`.replace(/[0-9a-f]{40}/, '(id)');
  };
  return { events: () => wire.unread.map(shown), close: () => wire.destroy() };
}

for (const [name, connect] of Object.entries(CLIENTS))
  test(`${name} goes on after each takeover, and no acknowledged write is lost`, (t) =>
    withSeats(t, (scene) => assertGoesOn(t, scene, async (seats) => new Writer(name, await connect(seats)))));

test('both Sentinels know each other, and the one of the process that takes over publishes the switch', async (t) => {
  await withSeats(t, async ({ seats: [one, two] }) => {
    const first = one.start();
    await answersWith(one, one);
    two.start('--standby');
    await answersWith(two, one);
    const othersOf = async (port: number): Promise<string> => {
      const wire = await Wire.open({ port });
      wire.send('SENTINEL', 'SENTINELS', MASTER);
      const frame = await wire.frame();
      wire.destroy();
      return frame.replaceAll('\r\n', ' ');
    };
    await until(async () => (await othersOf(one.sentinel)).includes(`port $5 ${two.sentinel} `), 20_000);
    assert.ok((await othersOf(two.sentinel)).includes(`port $5 ${one.sentinel} `));

    const { events, close } = await listenTo(two.sentinel);
    first.signal('SIGKILL');
    await answersWith(two, two);
    await until(() => events().some((event) => event.startsWith('+switch-master')), 20_000);
    close();
    assert.deepEqual(
      events().filter((event) => !event.includes(' sentinel ')),
      [
        `+sdown master ${MASTER} ${addressOf(one)}`,
        `+odown master ${MASTER} ${addressOf(one)} #quorum 1/1`,
        `+switch-master ${MASTER} ${addressOf(one)} ${addressOf(two)}`,
      ],
    );
  });
});
