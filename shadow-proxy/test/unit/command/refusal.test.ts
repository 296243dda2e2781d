/** What the proxy refuses, by its subcommand or its parameter. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blockOption, mayRefuse, refusal } from '../../../src/command/policy.js';
import { CommandTable } from '../../../src/command/table.js';
import { find, parse } from '../../support/command-frames.js';

const table = new CommandTable();
const refused = (command: string): string | null => {
  const args = command.split(' ');
  const { frame, argStart, argEnd, argc } = parse(args);
  return refusal(find(table, args)!, frame, argStart, argEnd, argc);
};

test('subcommands of DEBUG that harm nothing are let through', () => {
  assert.equal(refused('DEBUG SLEEP 0'), null);
  assert.equal(refused('DEBUG'), null);
  assert.equal(refused('debug Set-Active-Expire 0'), null);
  assert.match(refused('DEBUG SEGFAULT')!, /^ERR shadow-proxy: DEBUG SEGFAULT is not supported/);
  assert.match(refused(`DEBUG ${'x'.repeat(40)}`)!, /DEBUG X{32} is not/);
  assert.match(refused('DEBUG a\tb\x7fä')!, /DEBUG A\?B\?\?\? is not/);
});

test('parameters that every server may follow can be set, all others are named', () => {
  assert.equal(refused('CONFIG SET notify-keyspace-events KEA'), null);
  assert.equal(refused('CONFIG SET Slowlog-Max-Len 5 hash-max-listpack-entries 5'), null);
  assert.match(refused('CONFIG SET maxmemory 5')!, /CONFIG SET maxmemory is not supported/);
  assert.match(refused('CONFIG SET slowlog-max-len 5 maxmemory 5')!, /CONFIG SET maxmemory is/);
  assert.match(refused('CONFIG SET slowlog-max-lens 5')!, /CONFIG SET slowlog-max-lens is/);
  assert.match(refused('CONFIG SET xslowlog-max-len 5')!, /CONFIG SET xslowlog-max-len is/);
  assert.match(refused(`CONFIG SET ${'y'.repeat(70)} 5`)!, /CONFIG SET y{64} is not/);
  for (const parameter of ['slowlog-log-slower-than', 'latency-tracking', 'latency-tracking-info-percentiles'])
    assert.equal(refused(`CONFIG SET ${parameter} 1`), null, parameter);
  for (const parameter of ['zset-max-ziplist-value', 'stream-node-max-bytes', 'hll-sparse-max-bytes'])
    assert.equal(refused(`CONFIG SET ${parameter} 1`), null, parameter);
});

test('SET with GET and a digest of another length is refused: Redis 8.6 would give two replies', () => {
  const digest = '0123456789abcdef';
  for (const each of ['IFDEQ 1 GET', 'get ifdne x', `EX 10 IFDNE ${digest}0 GET`, 'IFEQ v IFDEQ 1 GET'])
    assert.match(refused(`SET k v ${each}`)!, /^ERR shadow-proxy: a digest of SET with GET must have exactly 16/, each);
  for (const each of [
    `IFDEQ ${digest} GET`,
    'IFDEQ 1',
    'IFDEQ 1 EX 10',
    'IFEQ ifdeq GET',
    'IFEQ GET IFDNE 1',
    'GET IFDNE',
  ])
    assert.equal(refused(`SET k v ${each}`), null, each);
  assert.equal(refused('SET k v'), null);
});

test('what is refused whole says why', () => {
  assert.match(refused('MONITOR')!, /^ERR shadow-proxy: MONITOR is not supported yet: it would show/);
  assert.match(
    refused('CLUSTER MEET a 1')!,
    /^ERR shadow-proxy: CLUSTER MEET is not supported yet: it changes the cluster/,
  );
  for (const each of ['HIMPORT PREPARE fs a b', 'HIMPORT SET k fs 1 2', 'HIMPORT DISCARDALL'])
    assert.match(refused(each)!, /is not supported yet: its field sets belong to one connection.*: use HSET$/);
  assert.match(refused('TRIMSLOTS RANGES 1 0 5')!, /it removes the keys of slots where the proxy does not see it/);
  assert.match(refused('BLMOVEM a b LEFT LEFT 0')!, /^ERR shadow-proxy: BLMOVEM is not supported yet: it may block/);
  for (const each of ['HOTKEYS START METRICS 1 CPU', 'HOTKEYS GET', 'CLUSTER SLOT-STATS SLOTSRANGE 0 5'])
    assert.equal(refused(each), null, each);
  assert.equal(refused('GET a'), null);
  assert.deepEqual(
    [
      mayRefuse('x', 'refused'),
      mayRefuse('debug', 'authority'),
      mayRefuse('config|set', 'broadcast'),
      mayRefuse('set', 'keyed'),
    ],
    [true, true, true, true],
  );
  assert.deepEqual([mayRefuse('get', 'keyed'), mayRefuse('config|get', 'authority')], [false, false]);
});

test('BLOCK is found among the options before STREAMS', () => {
  const at = (command: string): number => blockOption(command.split(' ').map((arg) => Buffer.from(arg)));
  assert.deepEqual(
    [
      'XREAD BLOCK 5 STREAMS a $',
      'XREAD COUNT 5 block 5 STREAMS a $',
      'XREADGROUP GROUP g BLOCK NOACK BLOCK 0 STREAMS a >',
      'XREAD COUNT BLOCK STREAMS a $',
      'XREAD STREAMS BLOCK 0',
      'XREADGROUP GROUP g c CLAIM 9 BLOCK 0 STREAMS a >',
      'XREADGROUP GROUP g c MAXCOUNT BLOCK MAXSIZE 9 BLOCK 0 STREAMS a >',
      'XREAD NOACK',
      'XREAD NOSUCH BLOCK 5',
      'BLOCK',
    ].map(at),
    [1, 3, 5, -1, -1, 6, 8, -1, -1, -1],
  );
});
