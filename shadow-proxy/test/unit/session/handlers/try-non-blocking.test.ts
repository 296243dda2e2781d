/** What a blocking command is asked as first, and what its answer becomes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { argumentsOf } from '../../../../src/resp/decode.js';
import { encodeCommand } from '../../../../src/resp/encode.js';
import { attemptOf, isNothing } from '../../../../src/session/handlers/try-non-blocking.js';

const ALL = new Set(['lmpop', 'zmpop']);
const wire = (reply: string): Buffer =>
  Buffer.from(`${reply.startsWith('-') ? reply : reply.replaceAll(' ', '\r\n')}\r\n`);

function attempt(
  command: string,
  known: ReadonlySet<string> = ALL,
): { asks: string; says(reply: string): string | null } | null {
  const made = attemptOf(argumentsOf(encodeCommand(command.split(' '))), known);
  if (made === null) return null;
  const asks = argumentsOf(made.frame).join(' ');
  assert.equal(asks.split(' ')[0], made.name);
  return { asks, says: (reply) => made.answer(wire(reply))?.toString().trimEnd().replaceAll('\r\n', ' ') ?? null };
}

for (const [command, asks, found, says] of [
  ['BLPOP k 0', 'lpop k', '$1 v', '*2 $1 k $1 v'],
  ['BRPOP k 1.5', 'rpop k', '$1 v', '*2 $1 k $1 v'],
  ['BLPOP j k 0', 'lmpop 2 j k LEFT', '*2 $1 k *1 $1 v', '*2 $1 k $1 v'],
  ['BRPOP j k 0', 'lmpop 2 j k RIGHT', '*2 $1 k *1 $1 v', '*2 $1 k $1 v'],
  ['BZPOPMIN k 0', 'zpopmin k', '*2 $1 m $1 3', '*3 $1 k $1 m $1 3'],
  ['BZPOPMAX k 0', 'zpopmax k', '*2 $1 m $1 3', '*3 $1 k $1 m $1 3'],
  ['BZPOPMIN j k 0', 'zmpop 2 j k MIN', '*2 $1 k *1 *2 $1 m $1 3', '*3 $1 k $1 m $1 3'],
  ['BZPOPMAX j k 0', 'zmpop 2 j k MAX', '*2 $1 k *1 *2 $1 m $1 3', '*3 $1 k $1 m $1 3'],
  ['BLMOVE k j LEFT RIGHT 0', 'lmove k j LEFT RIGHT', '$1 v', '$1 v'],
  ['BRPOPLPUSH k j 0', 'rpoplpush k j', '$1 v', '$1 v'],
  ['BLMPOP 0 1 k LEFT', 'lmpop 1 k LEFT', '*2 $1 k *1 $1 v', '*2 $1 k *1 $1 v'],
  ['BZMPOP 0 1 k MIN', 'zmpop 1 k MIN', '*2 $1 k *1 *2 $1 m $1 3', '*2 $1 k *1 *2 $1 m $1 3'],
  ['XREAD BLOCK 5 STREAMS s 0', 'xread STREAMS s 0', '*1 *2 $1 s *0', '*1 *2 $1 s *0'],
  ['XREADGROUP GROUP g c BLOCK 5 NOACK STREAMS s >', 'xreadgroup GROUP g c NOACK STREAMS s >', '*1 x', '*1 x'],
] as const)
  test(`${command} is asked as ${asks}`, () => {
    const made = attempt(command)!;
    assert.equal(made.asks, asks);
    assert.equal(made.says(found), says);
    for (const nothing of ['*-1', '$-1', '_', '*0']) assert.equal(made.says(nothing), null, nothing);
    assert.equal(made.says('-WRONGTYPE no list'), '-WRONGTYPE no list');
    assert.equal(made.says('-NOGROUP no group'), '-NOGROUP no group');
    assert.equal(made.says('-NOPERM may not'), null, 'the command itself may be allowed');
  });

test('it is not asked so where the server would refuse the time-out, or lacks the command, or $ is meant', () => {
  for (const command of [
    'BLPOP k -1',
    'BLPOP k x',
    'BZPOPMIN k 1e3',
    'BLMOVE k j LEFT RIGHT -1',
    'BLMPOP x 1 k LEFT',
    'XREAD BLOCK -1 STREAMS s 0',
    'XREAD BLOCK 5 STREAMS s $',
    'WAIT 1 0',
  ])
    assert.equal(attempt(command), null, command);
  const none = new Set<string>();
  assert.equal(attempt('BLPOP j k 0', none), null);
  assert.equal(attempt('BZPOPMIN j k 0', none), null);
  assert.equal(attempt('BLPOP k 0', none)!.asks, 'lpop k');
});

test('nothing: nil of either protocol, and no empty list', () => {
  assert.deepEqual(
    ['*-1', '$-1', '_', '*0', '$0', ':0'].map((reply) => isNothing(wire(reply))),
    [true, true, true, false, false, false],
  );
});
