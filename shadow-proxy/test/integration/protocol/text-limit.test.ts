/** What becomes text in the proxy of a client's command is bounded; a failure at one command ends one client. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Argument } from '../../../src/resp/encode.js';
import { withRig } from '../../support/rig.js';
import { partsOf } from '../../support/shard.js';

const MIB = 1 << 20;
const long = (bytes: number): Buffer => Buffer.alloc(bytes, 'x');

describe('long arguments', () => {
  test('what logs in or describes a client is refused from 16 KiB on, as Redis refuses it before a login', () =>
    withRig({}, async (rig) => {
      const wire = await rig.wire();
      const over = long(16_385);
      const commands: Argument[][] = [
        ['AUTH', over],
        ['AUTH', over, 'p'],
        ['CLIENT', 'SETNAME', over],
        ['CLIENT', 'KILL', 'ADDR', over],
        ['HELLO', 2, 'SETNAME', over],
        ['SELECT', over],
      ];
      for (const command of commands)
        assert.match(
          await wire.ask(...command),
          /^-ERR shadow-proxy: argument \d of [A-Z ]+ has 16385 bytes: at most 16384 are allowed$/,
        );
      assert.equal(await wire.ask('PING'), '+PONG');
    }));

  test('keys, channels and scripts are refused by name where they are too long for a text, and values are not', () =>
    withRig({}, async (rig) => {
      partsOf(rig.shard.shard).clients.textLimits = { argument: 16 << 10, names: MIB };
      const over = long(MIB + 1);
      const wire = await rig.wire();
      const commands: Argument[][] = [
        ['GET', over],
        ['MGET', 'k', over],
        ['SET', over, 'v'],
        ['WATCH', over],
        ['EVAL', over, 0],
        ['EVAL', 'return 1', 1, over],
        ['SCRIPT', 'LOAD', over],
        ['SUBSCRIBE', over],
        ['PSUBSCRIBE', over],
        ['PUBLISH', over, 'm'],
        ['NOSUCH', over],
        [over],
      ];
      for (const command of commands)
        assert.match(
          await wire.ask(...command),
          /^-ERR shadow-proxy: the (keys, channels or text of [A-Z ]+|arguments of an unknown command) have \d+ bytes: at most 1048576 are allowed$/,
          command.map(String).join(' ').slice(0, 40),
        );
      assert.equal(await wire.ask('MULTI'), '+OK');
      assert.match(await wire.ask('GET', over), /^-ERR shadow-proxy: the keys/);
      assert.match(await wire.ask('EXEC'), /^-EXECABORT/);
      assert.equal(await wire.ask('SET', 'k', over), '+OK');
      assert.equal(await wire.ask('APPEND', 'k', over), `:${2 * over.length}`);
      assert.equal(await wire.ask('PUBLISH', 'c', over), ':0');
      await rig.assertEqual();
    }));
});

describe('a failure of the proxy at a command', () => {
  for (const [where, command, breaks] of [
    ['as it is dispatched', ['INCRBYFLOAT', 'n', '1'], ['counts', 'sent']],
    ['as its answer comes', ['CLIENT', 'SETNAME', 'app'], ['client', 'rename']],
    ['as it has waited for earlier ones', ['RESET'], ['client', 'reset']],
  ] as const)
    test(`closes its client alone, is counted and logged: ${where}`, () =>
      withRig({}, async (rig) => {
        const { clients } = partsOf(rig.shard.shard);
        const problems: string[] = [];
        clients.onFailure = ({ message }) => void problems.push(message);
        const [wire, other] = [await rig.wire(), await rig.wire()];
        assert.equal(await wire.ask('PING'), '+PONG');
        const [session] = clients.sessions.values();
        const owner = breaks[0] === 'client' ? session.client : clients.counts;
        Object.assign(owner, {
          [breaks[1]]: () => {
            throw new Error('broken');
          },
        });
        if (command[0] === 'RESET') wire.send('SET', 'k', 'v');
        wire.send(...command);
        await wire.closed;
        delete (owner as unknown as Record<string, unknown>)[breaks[1]];
        assert.deepEqual([problems, rig.shard.snapshot().clientsClosed.failure], [['broken'], 1]);
        assert.equal(await other.ask('SET', 'k', 'w'), '+OK');
        await rig.assertEqual();
      }));
});
