/** Found by `npm run simulate -- --profile fenced`: the proxy was killed while the source was down. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FENCED_PLAN, makeKit } from '../../kept/fenced.js';
import { KeptWorld } from '../../kept/world.js';

/** A look each 5 s would be too late. */
const SOON_MS = 1_500;

test('A source that was down when the proxy started is fenced as soon as it is up', () =>
  KeptWorld.run(
    async (kept) => {
      await kept.change('live');
      kept.source.stop();
      kept.proxy.kill();
      kept.proxy.start();
      await kept.until(() => kept.proxy.launched !== null, 'the next process serves');
      await kept.pass(SOON_MS);
      kept.source.start(true);
      makeKit(kept);
      const rules: string[] = [];
      kept.source.onCommand = (_address, [name, what, user, ...given]) => {
        if (name === 'ACL' && what === 'SETUSER' && user === 'default') rules.push(given.join(' '));
      };
      await kept.pass(SOON_MS);
      assert.deepEqual(rules, ['-@write']);
    },
    FENCED_PLAN,
    makeKit,
  ));
