/** Which scripts are kept, and for how long. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { argumentsOf } from '../../../src/resp/decode.js';
import { encodeCommand } from '../../../src/resp/encode.js';
import { Scripts, type Script } from '../../../src/script/catalog.js';

const KIB = 1 << 10;
const evalOf = (text: string): Buffer[] => argumentsOf(encodeCommand(['EVAL', text, 0]));
const shaOf = (text: string): string => createHash('sha1').update(text).digest('hex');
const byDigest = (scripts: Scripts, text: string): Script | undefined =>
  scripts.find(argumentsOf(encodeCommand(['EVALSHA', shaOf(text).toUpperCase(), 0]))) as Script | undefined;
/** A script of so many KiB. */
const text = (name: string, kib = 1): string => `return '${name}' --`.padEnd(kib * KIB, 'x');

test('texts that no server has accepted take no more than their bound, and nothing of those that it has', () => {
  const scripts = new Scripts(64 * KIB, 16 * KIB);
  for (const name of ['a', 'b']) scripts.accepted(evalOf(text(name)));
  for (let i = 0; i < 1_000; i++) {
    scripts.learn(Buffer.from(text(`${i}`)));
    scripts.find(evalOf(text(`-${i}`)));
  }
  assert.ok(scripts.bytes <= 80 * KIB, `${scripts.bytes}`);
  for (const name of ['a', 'b']) assert.equal(byDigest(scripts, text(name))?.accepted, true);
  assert.equal(byDigest(scripts, text('0')), undefined);
});

test('of those that servers have accepted, the ones used longest ago are forgotten', () => {
  const scripts = new Scripts(16 * KIB, 16 * KIB);
  for (const name of ['a', 'b', 'c']) scripts.accepted(evalOf(text(name)));
  const server = { runId: '1' } as Parameters<Scripts['knownTo']>[0];
  const b = byDigest(scripts, text('b'))!;
  scripts.loadedOn(server, b);
  // Each takes 4 KiB: the fifth has no room.
  scripts.accepted(evalOf(text('a')));
  for (const name of ['d', 'e']) scripts.accepted(evalOf(text(name)));
  const left = ['a', 'b', 'c', 'd', 'e'].filter((name) => byDigest(scripts, text(name)) !== undefined);
  assert.deepEqual([left, scripts.knownTo(server, b)], [['a', 'c', 'd', 'e'], false]);
  assert.ok(scripts.bytes <= 16 * KIB);
});

test('a script is the same one before and after a server has accepted it', () => {
  const scripts = new Scripts();
  const sent = scripts.find(evalOf(text('a'))) as Script;
  assert.equal(sent.accepted, false);
  assert.equal(byDigest(scripts, text('a')), sent);
  scripts.accepted(evalOf(text('a')));
  assert.deepEqual([byDigest(scripts, text('a')) === sent, sent.accepted], [true, true]);
});

test('a flushed script is not loaded again, and its text is still known for calls before the flush', () => {
  const scripts = new Scripts();
  scripts.accepted(evalOf(text('a')));
  const server = { runId: '1' } as Parameters<Scripts['knownTo']>[0];
  const script = byDigest(scripts, text('a'))!;
  scripts.loadedOn(server, script);
  scripts.flushed();
  assert.deepEqual(
    [byDigest(scripts, text('a')) === script, script.accepted, scripts.knownTo(server, script)],
    [true, false, false],
  );
  scripts.accepted(evalOf(text('a')));
  assert.equal(script.accepted, true);
});

test('a text beyond 1 MiB is neither read nor kept: it may do anything', () => {
  const scripts = new Scripts();
  const long = evalOf(text('a', 1025));
  scripts.accepted(long);
  const script = scripts.find(long)!;
  assert.deepEqual(
    [scripts.bytes, script.swapsDatabases, script.mayPublish, script.mayKeepTtl([]), script.staysInDatabase([])],
    [0, true, true, true, false],
  );
});

test('the title of a script is its digest and its first words that are no comment; of a function, its name', () => {
  const scripts = new Scripts();
  const title = (...args: string[]): string => scripts.titleOf(argumentsOf(encodeCommand(args)));
  const body = `#!lua\n--[[\n  Adds a job\n]]\nlocal rcall = redis.call -- short\nrcall('TIME')\u0007${' '.repeat(50)}return 1`;
  assert.equal(
    title('EVAL', body, '0'),
    `script ${shaOf(body).slice(0, 8)} (local rcall = redis.call rcall('TIME')? …)`,
  );
  assert.equal(title('EVALSHA', 'ab\u001bcdef0123', '0'), 'script ab?cdef0');
  assert.equal(title('FCALL', 'my\nfunction', '0'), 'function my?function');
});
