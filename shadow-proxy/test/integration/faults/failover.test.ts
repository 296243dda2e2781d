/**
 * The source dies under load, and nobody is there to decide: its clients are sent to the target, and nothing
 * acknowledged is lost.
 */
import { test } from 'node:test';
import { dies } from './dies.js';

test('a source that is killed under load is failed over from, and nothing acknowledged is lost', async (t) => {
  await dies(t, { stage: 'shadow', side: 'source', how: 'killed' });
});
