/** Commands on counters with one part per region: answered from the counters, or refused by name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CounterError, type PlainCounters } from '../../../../../counters/src/index.js';
import type { Regional } from '../../../../src/regional/regional.js';
import { ErrorReply } from '../../../../src/regional/store.js';
import type { Stage } from '../../../../src/route/stage.js';
import { connect, settled } from '../../../support/context.js';

/** Counters that answer `result`, or fail with it, and what was run on them. */
async function counting(result: unknown = 7, stage: Stage = 'complete') {
  const ran: string[] = [];
  const answer = (what: string): Promise<unknown> => {
    ran.push(what);
    return result instanceof Error ? Promise.reject(result) : Promise.resolve(result);
  };
  const plain = {
    run: (name: string) => answer(`run ${name}`),
    look: (names: readonly string[]) => answer(`look ${names.join(' ')}`),
    runAll: (name: string, steps: readonly unknown[]) => answer(`run ${name} ${steps.length} times`),
  } as unknown as PlainCounters;
  let beside = 0;
  const regional = {
    counters: () => Promise.resolve(plain),
    lookBeside: (_key: string, found: () => void) => {
      beside++;
      found();
    },
  } as unknown as Regional;
  const rl = { stage, counterLayout: 'per-region' } as const;
  const { client, proxy } = await connect({ rl, default: stage }, { regional });
  return { client, proxy, ran, beside: () => beside };
}

test('the server checks the command in the client’s name, without running it; then the counter answers', async () => {
  const { client, proxy, ran, beside } = await counting();
  client.send('INCR', 'rl:a').send('PING');
  await settled();
  assert.deepEqual(proxy.took().slice(0, 1), ['target MULTI']);
  assert.deepEqual([ran, client.replies], [[], []]);
  proxy.answer('+OK +QUEUED +OK');
  await settled();
  assert.deepEqual([ran, client.replies[0], beside()], [['run rl:a'], ':7', 1]);
  assert.equal(proxy.secondWriterWrites('rl'), 1, 'a plain key beside the parts is counted');
  assert.deepEqual(proxy.mirrored, []);
});

test('a command that the server refuses is answered with its error, and counts nothing', async () => {
  const { client, proxy, ran } = await counting();
  client.send('INCR', 'rl:a');
  await settled();
  proxy.answer('+OK -NOPERM +OK');
  await settled();
  assert.deepEqual([client.replies, ran], [['-NOPERM'], []]);
});

test('what surely was not counted is an error reply; what may have been closes the client', async () => {
  for (const [problem, reply] of [
    [new ErrorReply('LOADING wait'), '-LOADING wait'],
    [new CounterError('FOREIGN_VALUE', 'not a counter'), '-ERR shadow-proxy: not a counter'],
    [new Error('connection lost'), null],
  ] as const) {
    const { client, proxy } = await counting(problem);
    client.send('INCR', 'rl:a');
    await settled();
    proxy.answer('+OK +QUEUED +OK');
    await settled();
    assert.deepEqual(
      [client.replies, client.destroyed],
      reply === null ? [[], true] : [[reply], false],
      String(problem),
    );
  }
});

test('commands that no counter has, other workloads’ keys and other databases are refused by name', async () => {
  for (const [command, refusal] of [
    [
      ['APPEND', 'rl:a', 'x'],
      /^-ERR shadow-proxy: APPEND is refused on "rl", whose counterLayout is per-region: .* are /,
    ],
    [
      ['DEL', 'rl:a', 'other'],
      /^-ERR shadow-proxy: DEL spans "rl", .*, and "default": send one command for each workl/,
    ],
    [['DEL', 'other', 'rl:a'], /^-ERR shadow-proxy: DEL spans "rl"/],
    [
      ['FLUSHALL'],
      /^-ERR shadow-proxy: FLUSHALL does not name its keys, and may touch "rl", .*: delete keys by their n/,
    ],
    [['EVAL', "redis.call('SET', ARGV[1], 1)", '0', 'x'], /^-ERR shadow-proxy: EVAL does not name its keys.*declare/],
  ] as const) {
    const { client, proxy, ran } = await counting();
    client.send(...command);
    await settled();
    assert.match(client.replies[0], refusal, command.join(' '));
    assert.deepEqual([ran, proxy.took()], [[], []]);
  }
  const { client, proxy } = await counting();
  client.send('SELECT', '1');
  for (let i = 0; i < 5 && client.replies.length === 0; i++) {
    await settled();
    if (proxy.sent.length > 0) proxy.answer('+OK');
  }
  client.send('INCR', 'rl:a');
  await settled();
  assert.match(client.replies.at(-1)!, /INCR is refused on "rl", .*, in database 1: per-region counters exist in data/);
});

test('other keys, and the workload while the source answers, go their usual way', async () => {
  const other = await counting();
  other.client.send('INCR', 'other').send('EVAL', 'return 1', '0');
  await settled();
  assert.deepEqual(other.proxy.took(), ['target INCR other', 'target EVAL return 1 0']);
  const source = await counting(7, 'shadow');
  source.client.send('INCR', 'rl:a').send('APPEND', 'rl:a', 'x');
  await settled();
  assert.deepEqual(source.proxy.took(), ['source INCR rl:a', 'source APPEND rl:a x']);
});

test('inside MULTI the command is queued, and runs with EXEC', async () => {
  const { client, proxy, ran } = await counting([7, 7]);
  client.send('MULTI').send('INCR', 'rl:a').send('INCR', 'rl:a');
  await settled();
  assert.deepEqual([client.replies, ran], [['+OK', '+QUEUED', '+QUEUED'], []]);
  client.send('EXEC');
  await settled();
  proxy.answer('+OK +QUEUED +QUEUED +OK');
  await settled();
  assert.deepEqual([ran, client.replies[3]], [['run rl:a 2 times'], '*2 :7 :7']);
});
