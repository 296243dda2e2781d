/** The fence has no gap when the source restarts, nor just before it is raised. No real client writes just then. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FENCED_PLAN, makeKit } from '../../kept/fenced.js';
import { KeptWorld } from '../../kept/world.js';

/** A look each 5 s, and some time for the fence itself. */
const SOON_MS = 6_000;
/** The source's counts have been read twice. */
const COUNTED_MS = 11_000;

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

test('A promotion is refused when a client has written to the source just before the fence', () =>
  KeptWorld.run(
    async (kept) => {
      const { source } = kept;
      await kept.pass(COUNTED_MS);
      source.onCommand = (_address, [name, what, user]) => {
        if (name === 'ACL' && what === 'SETUSER' && user === 'shadow-proxy:default') kept.write(source, 'k', 'v');
      };
      const change = kept.tryChange('live');
      await kept.until(() => change.outcome !== null, 'the change is over');
      assert.equal(source.entry('0 k')?.value, 'v');
      assert.equal(change.outcome, 'refused');
      source.onCommand = () => undefined;
      await kept.pass(SOON_MS);
      kept.write(source, 'k', 'later');
      assert.equal(source.entry('0 k')?.value, 'later', 'the fence is lifted');
    },
    FENCED_PLAN,
    makeKit,
  ));
