/**
 * What a command stores depends on the server: it is copied.
 *
 * Needs real servers: SORT, SUNIONSTORE and GEOSEARCHSTORE, whose order each server chooses.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Argument } from '../../../src/resp/encode.js';
import { withRig } from '../../support/rig.js';

/** Members, all of whose weights are equal in threes. */
const TIED = Array.from({ length: 60 }, (_, i) => `m${(i * 7919) % 1000}`);

for (const stage of ['shadow', 'live'] as const) {
  test(`stored results whose order or choice is the server's own are the same on both servers, in ${stage}`, async () => {
    await withRig({ default: { stage } }, async ({ wire, client, target, assertEqual }) => {
      const proxy = await wire();
      await proxy.ask('SADD', 'set', ...TIED);
      await proxy.pipeline(TIED.map((member, i) => ['SET', `w_${member}`, String.fromCharCode(97 + (i % 3))]));
      await proxy.ask('GEOADD', 'geo', ...TIED.flatMap((member, i) => [(i % 6) * 0.3, 84.5 + (i % 5) * 0.1, member]));
      // Near the pole, Redis 7.0 finds in an area what KeyDB does not, and in another order.
      await proxy.ask('GEOADD', 'pole', 132.3, 85, 'a', 20.52, 85, 'b');
      await proxy.ask('GEOADD', 'ice', 61.29, 81.908, 'a', 28.17, 82.499, 'b');
      const stores: Argument[][] = [
        ['SORT', 'set', 'BY', 'w_*', 'ALPHA', 'STORE', 'd'],
        ['SORT', 'set', 'BY', 'w_*', 'ALPHA', 'LIMIT', 3, 20, 'GET', '#', 'STORE', 'd'],
        ['SORT', 'set', 'BY', 'nosuch_*', 'ALPHA', 'STORE', 'd'],
        ['SORT', 'set', 'ALPHA', 'STORE', 'd'],
        ...['STORE', 'STOREDIST'].flatMap((store): Argument[][] => [
          ['GEORADIUS', 'geo', 0.4, 84.7, 90, 'km', 'COUNT', 7, 'ANY', store, 'd'],
          ['GEORADIUS', 'geo', 0.4, 84.7, 60, 'km', 'COUNT', 7, store, 'd'],
          ['GEORADIUSBYMEMBER', 'geo', TIED[0], 100, 'km', 'COUNT', 5, 'ANY', store, 'd'],
          ['GEORADIUS', 'geo', 0.4, 84.7, 40, 'km', store, 'd'],
        ]),
        ['GEOSEARCHSTORE', 'd', 'geo', 'FROMLONLAT', 0.4, 84.7, 'BYRADIUS', 90, 'km', 'COUNT', 7, 'ANY'],
        ['GEOSEARCHSTORE', 'd', 'geo', 'FROMMEMBER', TIED[0], 'BYBOX', 90, 90, 'km', 'COUNT', 7],
        ['GEORADIUS', 'pole', 132.3, 85, 1000, 'km', 'STORE', 'd'],
        ['GEORADIUS', 'ice', 61.29, 81.908, 500, 'km', 'COUNT', 1, 'ANY', 'STOREDIST', 'd'],
        ['GEORADIUSBYMEMBER', 'pole', 'a', 1000, 'km', 'STOREDIST', 'd'],
        ['GEORADIUSBYMEMBER', 'ice', 'a', 500, 'km', 'COUNT', 1, 'ANY', 'STORE', 'd'],
        ['GEOSEARCHSTORE', 'd', 'pole', 'FROMLONLAT', 132.3, 85, 'BYRADIUS', 1000, 'km'],
        ['GEOSEARCHSTORE', 'd', 'ice', 'FROMLONLAT', 61.29, 81.908, 'BYRADIUS', 500, 'km', 'COUNT', 1, 'ANY'],
      ];
      for (const [i, store] of stores.entries()) {
        const own = store.map((word) => (word === 'd' ? `d:${i}` : word));
        assert.match(await proxy.ask(...own), /^:[1-9]/, own.join(' '));
        const inside = store.map((word) => (word === 'd' ? `e:${i}` : word));
        assert.match((await proxy.pipeline([['MULTI'], inside, ['EXEC']]))[2], /^\*1\r\n:[1-9]/, own.join(' '));
      }
      await assertEqual();
      assert.equal(await client({ of: target }).exists(...stores.map((_, i) => `d:${i}`)), stores.length);
    });
  });
}
