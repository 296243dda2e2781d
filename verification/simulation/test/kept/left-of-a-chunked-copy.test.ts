/** Found in profile `chunks`, seed 749: while other keys were copied in chunks, what an earlier copy left was kept. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryKey } from '../../../../shadow-proxy/src/copy/large/temporary.js';
import { KeptWorld } from '../../kept/world.js';

const ELEMENTS = 'x '.repeat(5_000).trim();
const LEFT = temporaryKey(0, Buffer.from('other')).toString();

test('A backfill deletes what an interrupted chunked copy left while it copies another key in chunks', () =>
  KeptWorld.run(
    async (kept) => {
      kept.bypass(kept.target, `RPUSH ${LEFT} element`);
      kept.bypass(kept.source, `RPUSH large ${ELEMENTS}`);
      kept.startJob({ kind: 'backfill' });
      const { chunked } = kept.proxy.parts!.sequencer.suspects;
      await kept.until(() => chunked.size > 0, 'the key is copied in chunks');
      // The mirror's keys are found before the copy ends.
      kept.target.onCommand = (_address, args) => {
        if (args[0] === 'SCAN') assert.ok(chunked.size > 0);
      };
      await kept.until(() => kept.proxy.condition()!.job?.state === 'done', 'the job is done');
      assert.deepEqual(kept.values(`0 ${LEFT}`), [null, null]);
      const [source, target] = kept.values('0 large');
      assert.deepEqual(source, target);
    },
    { limits: { largeKeyBytes: '1KiB' } },
  ));

test('A backfill does not delete what a chunked copy builds that began when the key was found already', () =>
  KeptWorld.run(
    async (kept) => {
      const { suspects, router } = kept.proxy.parts!;
      const built = temporaryKey(0, Buffer.from('large')).toString();
      kept.bypass(kept.target, `RPUSH ${built} element`);
      const sent: string[] = [];
      let isScanned = false;
      kept.target.onCommand = (_address, [name]) => (isScanned ||= name === 'SCAN');
      kept.source.onCommand = (address, args) => {
        if (!isScanned || args[0] !== 'EXISTS' || !args.includes(built)) return;
        kept.source.onCommand = () => undefined;
        // The answer comes when a copy of the key has begun.
        kept.endOf(kept.source, Number(address.split(':')[1])).silence(4);
        kept.bypass(kept.source, `RPUSH large ${ELEMENTS}`);
        kept.target.onCommand = (_address, [name, key]) => {
          if (key === built && name !== sent.at(-1)) sent.push(name);
        };
        kept.proxy.within(() => suspects.mark(0, Buffer.from('large'), router.default, 'mismatch'));
      };
      kept.startJob({ kind: 'backfill' });
      await kept.until(() => kept.proxy.condition()!.job?.state === 'done' && kept.isClean, 'the job is done');
      assert.deepEqual(sent, ['UNLINK', 'RPUSH', 'RENAME']);
      const [source, target] = kept.values('0 large');
      assert.deepEqual(target, source);
    },
    { limits: { largeKeyBytes: '1KiB' } },
  ));
