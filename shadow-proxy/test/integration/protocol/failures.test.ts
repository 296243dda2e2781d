/**
 * A failure of the proxy: whatever throws while a reply is handled, it stays with its own command. A client that waits
 * for it is closed, no other one; the servers are equal in the end; it is counted.
 *
 * Not simulated yet: an exception while a reply is handled: runs have no fault inside the proxy.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Argument } from '../../../src/resp/encode.js';
import type { Parts } from '../../../src/shard/parts.js';
import { withRig } from '../../support/rig.js';
import { partsOf, until } from '../../support/shard.js';
import type { ConnectedClient } from '../../../src/session/clients.js';

type Broken = readonly [owner: object, method: string];

/** Makes the method throw the next time that it is called. */
function breakOnce([owner, method]: Broken): void {
  const methods = owner as Record<string, unknown>;
  const own = Object.hasOwn(methods, method) ? methods[method] : undefined;
  methods[method] = () => {
    if (own === undefined) delete methods[method];
    else methods[method] = own;
    throw new TypeError(`${method} is broken`);
  };
}

interface Failing {
  readonly name: string;
  readonly before?: readonly (readonly Argument[])[];
  readonly command: readonly (readonly Argument[])[];
  /** What another client sends, so that the command is answered. */
  readonly push?: readonly Argument[];
  readonly breaks: (parts: Parts, session: ConnectedClient) => Broken;
  /** Whether its client has the reply already. */
  readonly isAnswered?: true;
  /** Whether it fails at a reply, and not at what a promise gives. */
  readonly isReply?: false;
}

const FAILING: readonly Failing[] = [
  { name: 'the effect of a write', command: [['SET', 'k', 'v']], breaks: (p) => [p.sequencer.effects, 'write'] },
  { name: 'a read', command: [['GET', 'k']], breaks: (p) => [p.sequencer.effects, 'read'] },
  { name: 'the reply to a client', command: [['SET', 'k', 'v']], breaks: (_, session) => [session, 'answered'] },
  {
    name: 'the reply to EXEC',
    command: [['MULTI'], ['SET', 'k', 'v'], ['APPEND', 'l', 'w'], ['EXEC']],
    breaks: (p) => [p.sequencer.mirrors.target, 'appendAll'],
  },
  {
    name: 'a blocked command',
    command: [['BLMOVE', 'list', 'other', 'LEFT', 'LEFT', 0]],
    push: ['RPUSH', 'list', 'a'],
    breaks: (p) => [p.sequencer.effects, 'woken'],
    isAnswered: true,
  },
  {
    name: 'a command that is sent as several',
    before: [['XADD', 's', '*', 'f', 'v']],
    command: [['XADD', 's', 'MAXLEN', '~', 1, '*', 'f', 'v']],
    breaks: (p) => [p.sequencer.effects, 'probed'],
    isAnswered: true,
  },
  {
    name: 'a command that runs alone',
    command: [['FLUSHALL']],
    breaks: (p) => [p.sequencer.mirrors.target, 'append'],
  },
  {
    name: 'another database, once its lane is open',
    command: [['SELECT', 1]],
    breaks: (_, session) => [session.client, 'become'],
    isReply: false,
  },
  {
    name: 'WATCH, once it has a lane of its own',
    command: [['WATCH', 'k']],
    breaks: (_, session) => [session.client, 'watches'],
    isReply: false,
  },
  {
    name: 'the mirror’s reply to a write',
    before: [['SET', 'k', 'v', 'EX', 100]],
    command: [['PEXPIRE', 'k', 90_000]],
    breaks: (p) => [p.sequencer.expiry, 'confirmed'],
    isAnswered: true,
  },
  {
    name: 'a difference',
    before: [['SADD', 'set', ...Array.from({ length: 2_000 }, (_, n) => n)]],
    command: [['SMEMBERS', 'set']],
    breaks: (p) => [p.adjudicator, 'differs'],
    isAnswered: true,
  },
];

describe('a failure of the proxy stays with its own command', () => {
  for (const { name, before = [], command, push, breaks, isAnswered = false, isReply = true } of FAILING)
    test(name, () =>
      withRig({}, async (rig) => {
        const parts = partsOf(rig.shard.shard);
        const [wire, other, blocked] = [await rig.wire(), await rig.wire(), await rig.wire()];
        await wire.ask('PING');
        const [session] = parts.clients.sessions.values();
        for (const each of before) await wire.ask(...each);
        await rig.assertEqual();
        blocked.send('BLPOP', 'nothing', 0);
        breakOnce(breaks(parts, session));
        for (const each of command) wire.send(...each);
        // On the same lane, right behind it.
        if (push === undefined) assert.equal(await other.ask('INCR', 'n'), ':1');
        else {
          await until(() => parts.clients.blocked.size === 2);
          await other.ask(...push);
        }
        if (isAnswered) await Promise.all(command.map(() => wire.frame()));
        else await wire.closed;
        const counted = (): boolean => {
          const { replyFailures, clientsClosed } = rig.shard.snapshot();
          return replyFailures === Number(isReply) && (isReply || clientsClosed.failure === 1);
        };
        await until(counted);
        assert.equal(await other.ask('SET', 'after', 'w'), '+OK');
        if (isAnswered) assert.equal(await wire.ask('SET', 'after', 'x'), '+OK');
        await other.ask('RPUSH', 'nothing', 'a');
        assert.match(await blocked.frame(), /nothing/);
        await until(() => rig.shard.snapshot().workloads.every(({ clean }) => clean), 20_000);
        await rig.assertEqual(Number(isReply));
        assert.equal(rig.shard.snapshot().source.up, true);
      }),
    );
});
