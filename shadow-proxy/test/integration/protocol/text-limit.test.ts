/**
 * What becomes text in the proxy of a client's command is bounded; a failure at one command ends one client.
 *
 * Needs real servers: from which length a Redis refuses names, logins and keys.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Argument } from '../../../src/resp/encode.js';
import { withRig } from '../../support/rig.js';
import { redisSince } from '../../support/servers.js';
import { partsOf, until } from '../../support/shard.js';

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

  test('a client name is refused beyond 1024 characters, and CLIENT LIST answers', () =>
    withRig({}, async (rig) => {
      const wire = await rig.wire();
      const refusal = "-ERR shadow-proxy: the client's name has 1025 characters: at most 1024 are allowed";
      assert.equal(await wire.ask('CLIENT', 'SETNAME', long(1025)), refusal);
      assert.equal(await wire.ask('HELLO', 2, 'SETNAME', long(1025)), refusal);
      // The proxy keeps no name of a library: any length is answered as by the source.
      const setInfo = (await redisSince(7, 2)) ? /^\+OK$/ : /^-ERR [Uu]nknown subcommand/;
      assert.match(await wire.ask('CLIENT', 'SETINFO', 'lib-name', long(1025)), setInfo);
      assert.equal(await wire.ask('CLIENT', 'GETNAME'), '$-1');
      const named = await Promise.all(Array.from({ length: 50 }, () => rig.wire()));
      for (const each of named) assert.equal(await each.ask('CLIENT', 'SETNAME', long(1024)), '+OK');
      const listed = await wire.ask('CLIENT', 'LIST');
      assert.equal(listed.match(/name=x{1024} /g)?.length, 50);
    }));

  test('names of clients and channels, and commands that block, count as memory of their client', () =>
    withRig({ limits: { totalClientBytes: 4 * MIB } }, async (rig) => {
      const [wire, subscriber, blocked, again] = await Promise.all(Array.from({ length: 4 }, () => rig.wire()));
      const bytes = (): number =>
        [...partsOf(rig.shard.shard).clients.sessions.values()].reduce((sum, each) => sum + each.bytes, 0);
      assert.equal(await wire.ask('CLIENT', 'SETNAME', long(1000)), '+OK');
      assert.ok(bytes() >= 1000 && bytes() < 2000, `${bytes()}`);
      assert.equal(await wire.ask('RESET'), '+RESET');
      assert.equal(bytes(), 0);
      await subscriber.ask('SUBSCRIBE', long(MIB));
      assert.ok(bytes() >= MIB, `${bytes()}`);
      await subscriber.ask('UNSUBSCRIBE');
      await until(() => bytes() < 1000);
      blocked.send('BLPOP', long(MIB), 0);
      await until(() => bytes() > 2 * MIB);
      again.send('BLPOP', long(MIB + 1), 0);
      await until(() => rig.shard.snapshot().clientsClosed.memory === 1);
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
        ['NOTHING', over],
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
        const onFailure = ({ message }: Error): unknown => problems.push(message);
        Object.assign(clients, { onFailure });
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
