/**
 * Each command of the CLI beside each of the hostile peers, and a server that fails after so many replies.
 *
 * Needs real sockets: a server that closes, hangs or answers nonsense after any number of replies.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startRedis, stopServers } from '../../../src/local/servers.js';
import { breaking, HostilePeer, QUICK, SLOW, type Fault } from '../../support/hostile.js';
import { casesOf, endsWell, testAgainst } from './commands.js';

const cases = await casesOf();
testAgainst({ ...QUICK, ...SLOW }, cases);

describe('a server that fails after so many replies, at each of them:', () => {
  const FAULTS: readonly Fault[] = ['close', 'garbage', 'refuse', 'hang'];
  const tried = cases.filter(({ words, only, more }) =>
    ['plan init', 'assess'].includes(words.join(' ')) && only === undefined ? true : more.includes('--no-proxy'),
  );
  for (const each of tried)
    for (const fault of FAULTS)
      test(`${each.words.join(' ')} ${each.more.join(' ')}: ${fault}`, async (t) => {
        const server = await startRedis({ config: { requirepass: 'secret' } });
        t.after(() => stopServers());
        let broken = 0;
        // Enough for the longest dialogue: after it, nothing breaks any more.
        for (let replies = 0; replies < 40; replies++) {
          const peer = await HostilePeer.start(breaking(server.port, replies, fault));
          const summary = await endsWell(t, each, peer.port, 'shared');
          peer.stop();
          if (/ ended with 3 /.test(summary)) broken++;
        }
        assert.ok(broken > 0 && broken < 40, `${broken} of 40 were inconclusive`);
      });
});
