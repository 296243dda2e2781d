/**
 * What `npm run matrix -- --new` finds unknown of a server.
 *
 * Needs real servers: COMMAND, errors and INFO of a server, against what the proxy knows.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findKeydb, findRedis } from '../../../shadow-proxy/src/local/program.js';
import { needs } from '../../../shadow-proxy/test/support/needs.js';
import { nameOf, readKnown, unknownOf } from '../new/known.js';
import { infoFields, shapeOf, type Facts } from '../new/probe.js';
import { survey } from '../new/survey.js';

const FACTS: Facts = {
  info: ['used_memory'],
  settings: ['maxmemory'],
  choices: ['maxmemory-policy noeviction'],
  errors: ['ERR syntax error'],
};

test('what no known server says is new, and what the one before it says is missing', () => {
  const known = { 'redis-7.0.15': FACTS, 'redis-8.6.2': { ...FACTS, info: ['used_memory', 'later'] } };
  const redis = { name: 'redis', version: '8.8.0' } as const;
  const facts = {
    info: ['used_memory', 'newest'],
    settings: ['timeout'],
    choices: ['maxmemory-policy noeviction', 'maxmemory-policy other'],
    errors: ['ERR other words'],
  };
  assert.deepEqual(unknownOf(redis, facts, known, new Map([['ERR other words', 'GET']])), [
    'INFO: newest is new',
    'INFO: later is missing: look for its readers',
    'setting: timeout is new',
    'setting: maxmemory is missing: look for its readers',
    'setting: maxmemory-policy other is a new choice',
    'error: ERR other words (GET): compare/wording.ts may have to know it',
  ]);
  assert.deepEqual(unknownOf({ ...redis, version: '7.0.15' }, FACTS, known, new Map()), []);
});

test('fields of INFO and texts of errors are taken without what changes from call to call', () => {
  const info = 'used_memory:5\r\ndb0:keys=1\r\ncmdstat_get:calls=1\r\nlist12_size:3\r\n';
  assert.deepEqual(infoFields(info), ['listN_size', 'used_memory']);
  assert.equal(
    shapeOf("ERR unknown command 'nosuch', with args beginning with: 'a' 'b'", ['nosuch', 'a', 'b']),
    'ERR unknown command …, with args beginning with: …',
  );
  assert.equal(
    shapeOf('ERR value of key2 must be at most 512 bytes', ['GET', 'key2']),
    'ERR value of … must be at most N bytes',
  );
});

test('of the target of the tests nothing is unknown, where it is known', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const program = (await findKeydb())!;
  const known = readKnown();
  if (known[nameOf(program)] === undefined) return t.skip(`nothing is known of ${nameOf(program)}`);
  const { software, work, facts } = await survey(program.path, true, known);
  assert.equal(nameOf(software), nameOf(program));
  assert.deepEqual(work, []);
  assert.deepEqual(facts, known[nameOf(program)], 'the same program says the same');
});

test('what is unknown of the source of the tests is listed, with a call that shows it, and nothing else', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const program = await findRedis();
  const without = (facts: Facts): Facts => ({
    info: facts.info.filter((name) => name !== 'used_memory'),
    settings: facts.settings.filter((name) => name !== 'maxmemory'),
    choices: facts.choices.filter((choice) => choice !== 'maxmemory-policy allkeys-lru'),
    errors: facts.errors.filter((said) => !said.startsWith('NOSCRIPT')),
  });
  const known = readKnown();
  const less = Object.fromEntries(Object.entries(known).map(([name, facts]) => [name, without(facts)]));
  const { software, work, facts } = await survey(program.path, false, less);
  const expected = [
    'INFO: used_memory is new',
    'setting: maxmemory is new',
    'setting: maxmemory-policy allkeys-lru is a new choice',
    'error: NOSCRIPT No matching script. Please use EVAL. (EVALSHA nosuch 0): compare/wording.ts may have to know it',
  ];
  assert.deepEqual(
    work.filter((line) => expected.includes(line)),
    expected,
    JSON.stringify(work),
  );
  if (known[nameOf(program)] === undefined) return;
  assert.equal(nameOf(software), nameOf(program));
  assert.deepEqual(work, expected);
  assert.deepEqual(facts, known[nameOf(program)], 'the same program says the same');
});
