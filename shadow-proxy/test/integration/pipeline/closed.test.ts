/**
 * Nobody waits for a reply on a connection that is lost already.
 *
 * Not simulated yet: a command that is given to a lane just after that lane has been closed.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOTHING, Operation } from '../../../src/pipeline/operation.js';
import { encodeCommand } from '../../../src/resp/encode.js';
import { withRig } from '../../support/rig.js';
import { partsOf, until } from '../../support/shard.js';

test('what is sent on a lane that is closed is lost', async () => {
  await withRig({}, async ({ shard }) => {
    const { sequencer } = partsOf(shard.shard);
    const lane = await sequencer.lanes.source.borrow({ db: 0, protocol: 2, credentials: undefined });
    lane.close();
    await until(() => lane.closed);
    const frame = encodeCommand(['PING']);
    const outcome = await new Promise<string>((resolve) => {
      const sink = {
        answered: () => resolve('answered'),
        lost: (_operation: Operation, reason: Error) => resolve(reason.message),
      };
      sequencer.submit(
        new Operation(frame, 0, frame.length, sink, undefined, sequencer.router.default, 0, 2, NOTHING),
        lane,
      );
    });
    assert.equal(outcome, 'the connection to the server is closed');
  });
});
