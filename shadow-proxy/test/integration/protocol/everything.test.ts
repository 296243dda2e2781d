/**
 * Every command that either server knows, with arguments that make little sense: an answer within a second, and the
 * right client's.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CommandTable, type CommandSpec } from '../../../src/command/table.js';
import { findKeydb } from '../../../src/local/program.js';
import { encodeCommand } from '../../../src/resp/encode.js';
import { differences } from '../../support/keyspace.js';
import { besideRedis } from '../../support/twin.js';
import { Wire } from '../../support/wire.js';

const skip = (await findKeydb()) === null ? 'needs a keydb-server' : false;

/** A number: so large that, as a time to live, it outlasts the test. */
const N = '2000000';
/** The arguments after the name, by their place: as keys, as numbers, and as both. */
const FILLS: readonly ((place: number) => string)[] = [
  () => N,
  (place) => (place === 0 ? 'string' : 'x'),
  (place) => ['list', N, 'b', '0', 'set'][place % 5],
  (place) => [N, 'hash', 'f', 'stream'][place % 4],
];

/** Every command and subcommand, with no, and with some more arguments than it needs at least. */
function* calls(table: CommandTable): Generator<{ spec: CommandSpec; args: string[] }> {
  for (const spec of table.all) {
    const name = spec.name.split('|');
    const least = Math.abs(spec.arity) - name.length;
    for (const fill of FILLS) {
      for (const count of new Set([0, Math.max(0, least), least + 1, least + 2])) {
        yield { spec, args: [...name, ...Array.from({ length: count }, (_, i) => fill(i))] };
      }
    }
  }
}

const SET_UP = [
  ['FLUSHALL'],
  ['SET', 'string', 'x'],
  ['SET', N, '1'],
  ['RPUSH', 'list', 'a', 'b', 'c'],
  ['SADD', 'set', '1', 'x'],
  ['HSET', 'hash', 'f', '1'],
  ['ZADD', 'zset', '1', 'x'],
  ['XADD', 'stream', '1-1', 'f', 'v'],
];
/** Replies that may differ between two servers with the same data: order, chance, cursors, time, encoding, form. */
const MAY_DIFFER: ReadonlySet<string> = new Set(
  (
    'smembers sinter sunion sdiff hkeys hvals keys hgetall srandmember hrandfield zrandmember spop randomkey ' +
    'scan hscan sscan zscan ttl pttl expiretime pexpiretime object|idletime object|freq xpending xinfo|consumers time ' +
    'lastsave dump object|encoding object|refcount memory|usage xautoclaim xinfo|stream xinfo|groups xadd object|help'
  ).split(' '),
);

describe('every command', { skip }, () => {
  const beside = besideRedis();
  const table = new CommandTable();

  /** Sends the frames and an ECHO; what comes before its answer. Anything else than one reply a frame is an error. */
  async function asked(
    wire: Wire,
    commands: readonly (readonly string[])[],
    mark: string,
    unblock?: () => Promise<unknown>,
  ): Promise<string[]> {
    const blocks = unblock === undefined ? undefined : setInterval(() => void unblock(), 30);
    try {
      return await replies(wire, commands, mark);
    } finally {
      clearInterval(blocks);
    }
  }

  async function replies(wire: Wire, commands: readonly (readonly string[])[], mark: string): Promise<string[]> {
    wire.sendBytes(Buffer.concat([...commands, ['ECHO', mark]].map((args) => encodeCommand(args))));
    const replies: string[] = [];
    // The server tests itself for as long as that takes.
    // From the eleventh failed login within a minute on, the answer takes a second.
    const patience = commands.flat().includes('pfselftest') ? 10_000 : commands.flat().includes('auth') ? 3_000 : 1_000;
    for (;;) {
      const reply = await wire.frame(patience);
      if (reply === `$${mark.length}\r\n${mark}`) return replies;
      replies.push(reply);
    }
  }

  for (const protocol of [2, 3]) {
    test(`is answered within a second, in RESP${protocol}`, async () => {
      let wire = await Wire.open({ port: beside.rig.shard.port });
      const bystander = await Wire.open({ port: beside.rig.shard.port });
      const direct = await Wire.open({ port: beside.twin.port });
      for (const each of [wire, direct]) await each.pipeline([['HELLO', protocol], ...SET_UP]);
      /** Ends what blocks on the connection. */
      const unblocking = async (each: Wire, port: number): Promise<() => Promise<unknown>> => {
        const id = Number((await each.ask('CLIENT', 'ID')).slice(1));
        const other = each === direct ? await Wire.open({ port }) : bystander;
        return () => other.ask('CLIENT', 'UNBLOCK', id);
      };
      let counted = 0;
      for (const { spec, args } of calls(table)) {
        const shown = args.join(' ');
        // A subscriber is answered in its own way: pubsub.test.ts.
        if (shown === 'multi' || spec.handling === 'subscribe') continue;
        const mark = `mark ${counted++}`;
        const blocks = spec.blocking !== null;
        const replies = await asked(
          wire,
          [args],
          mark,
          blocks ? await unblocking(wire, beside.rig.shard.port) : undefined,
        ).catch((error: Error) => {
          if (/^(quit|client\|kill|post|host:)$/.test(spec.name) && wire.ended) return null;
          throw new Error(`${shown}: ${error.message}`);
        });
        if (replies === null || spec.name === 'reset' || spec.name === 'hello') {
          wire.destroy();
          wire = await Wire.open({ port: beside.rig.shard.port });
          await wire.ask('HELLO', protocol);
          continue;
        }
        if (spec.name === 'client|reply') assert.ok(replies.length <= 1);
        else assert.equal(replies.length, 1, shown);
        if (spec.handling === 'refused')
          assert.match(
            replies[0],
            /^-ERR (shadow-proxy: .* is not supported yet|wrong number|unknown (sub)?command)/,
            shown,
          );
        if (spec.name === 'select') await asked(wire, [['SELECT', '0']], 'back');
        if (spec.inSource && spec.handling === 'keyed' && !/supported yet|shadow-proxy/.test(replies[0])) {
          const expected = await asked(
            direct,
            [args],
            mark,
            blocks ? await unblocking(direct, beside.twin.port) : undefined,
          );
          if (!MAY_DIFFER.has(spec.name)) assert.deepEqual(replies, expected, shown);
        }
        // Whoever else is there gets nothing of it.
        if (counted % 50 === 0) assert.equal(await bystander.ask('ECHO', mark), `$${mark.length}\r\n${mark}`);
      }
      assert.ok(counted > 3000, `${counted}`);
      assert.deepEqual(bystander.unread, []);
      for (const each of [wire, direct, bystander]) each.destroy();
    });
  }

  test('is answered inside MULTI, and leaves no transaction open', async () => {
    let wire = await Wire.open({ port: beside.rig.shard.port });
    await wire.pipeline(SET_UP);
    let counted = 0;
    for (const { spec, args } of calls(table)) {
      const mark = `mark ${counted++}`;
      if (['quit', 'exec', 'discard', 'reset', 'multi', 'post', 'host:'].includes(spec.name)) continue;
      const replies = await asked(wire, [['MULTI'], args, ['EXEC']], mark).catch((error: Error) => {
        throw new Error(`${args.join(' ')}: ${error.message}`);
      });
      const [multi, queued, exec, ...more] = replies;
      assert.equal(multi, '+OK');
      assert.deepEqual(more, [], args.join(' '));
      // Queued and then run, or refused and then aborted; a server may refuse more at EXEC.
      if (spec.name === 'watch') assert.match(exec, /^(\*0|-EXECABORT)/);
      else if (queued.startsWith('-')) assert.match(exec, /^-EXECABORT/, args.join(' '));
      else
        assert.ok(
          queued === '+QUEUED' && /^(\*1\r\n|-EXECABORT)/.test(exec),
          `${args.join(' ')}: ${queued} ${exec.slice(0, 200)}`,
        );
      if (wire.ended) wire = await Wire.open({ port: beside.rig.shard.port });
    }
    assert.equal(await wire.ask('EXEC'), '-ERR EXEC without MULTI');
    wire.destroy();
  });

  test('left both servers equal', async () => {
    await beside.rig.shard.settled();
    // KeyDB takes a subkey where Redis wants no more than a key: that is told, and is no difference of data.
    const { unsupported, ...others } = beside.rig.shard.snapshot().mismatches;
    assert.deepEqual(
      others,
      {},
      JSON.stringify(
        beside.rig.shard.findings().map(({ command, source, target }) => [command, source.reply, target.reply]),
      ),
    );
    assert.ok(unsupported > 0);
    for (const { command, source } of beside.rig.shard.findings())
      assert.match(`${command}: ${source.reply}`, /^(p?ttl|xinfo\|\w+): -ERR wrong number of arguments/);
    assert.deepEqual(await differences(beside.rig.source, beside.rig.target), []);
    assert.equal(beside.rig.shard.snapshot().workloads[0].clean, true);
  });
});
