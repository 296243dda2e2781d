/** A source that restarts has no fence: nothing of it is on its disk. A real one restarts more slowly. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FENCED_PLAN, makeKit } from '../../kept/fenced.js';
import { KeptWorld } from '../../kept/world.js';

/** A look each 5 s, and some time for the fence itself. */
const SOON_MS = 6_000;

test('A source that restarts is fenced again', () =>
  KeptWorld.run(
    async (kept) => {
      const { source } = kept;
      await kept.change('live');
      source.stop();
      await kept.pass(1_000);
      source.start(true);
      makeKit(kept);
      kept.write(source, 'early', 'v');
      assert.equal(source.entry('0 early')?.value, 'v', 'its users have all rights');
      await kept.pass(SOON_MS);
      kept.write(source, 'late', 'v');
      assert.equal(source.entry('0 late'), undefined);
    },
    FENCED_PLAN,
    makeKit,
  ));
