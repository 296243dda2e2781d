/**
 * What the proxy does with each command: no command is silently let through.
 *
 * Needs real servers: COMMAND of both servers: no command and no subcommand is missing from the table.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { blockOption, handlingOf, namesInRules, refusal } from '../../../src/command/policy.js';
import { CommandTable } from '../../../src/command/table.js';
import { LOCAL } from '../../../src/session/handlers/answered-here.js';
import { commandsOfSource, withServers } from '../../support/servers.js';
import { find, parse } from '../../support/command-frames.js';
import { needs } from '../../support/needs.js';

const table = new CommandTable();

/** The refusal of one call, as the session asks for it. */
function refused(...args: string[]): string | null {
  const spec = find(table, args)!;
  const { frame, argStart, argEnd, argc } = parse(args);
  const answer = refusal(spec, frame, argStart, argEnd, argc);
  if (answer !== null) assert.equal(spec.refusable, true);
  return answer;
}

type Entry = readonly [
  string,
  number,
  readonly string[],
  number,
  number,
  number,
  unknown?,
  unknown?,
  unknown?,
  (readonly Entry[])?,
];

test('every command and subcommand of both running servers is in the table', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await withServers(async ({ source, target }) => {
    const ofTarget = new Set(table.all.filter(({ inTarget }) => inTarget).map(({ name }) => name));
    for (const [server, known] of [
      [source, await commandsOfSource()],
      [target, ofTarget],
    ] as const) {
      const client = new Redis(server.url);
      const entries = (await client.call('COMMAND')) as readonly Entry[];
      client.disconnect();
      assert.ok(entries.length > 200);
      for (const entry of entries.flatMap((entry) => [entry, ...(entry[9] ?? [])])) {
        const name = entry[0].toLowerCase();
        assert.ok(known.has(name) && table.byName(name) !== undefined, name);
      }
    }
  });
});

test('only ordinary commands on keys are keyed without a word in the policy', () => {
  const peculiar = ['admin', 'pubsub', 'blocking', 'no_auth', 'no_multi', 'allow_busy', 'asking', 'loading'];
  for (const spec of table.all.filter(({ handling }) => handling === 'keyed')) {
    assert.ok(spec.keySpecs.length > 0 || spec.readKeys !== null, spec.name);
    if (spec.blocking !== null || spec.name === 'pfdebug') continue;
    assert.deepEqual(
      spec.flags.filter((flag) => peculiar.includes(flag)),
      [],
      spec.name,
    );
  }
});

test('a command that writes is routed by its keys, passes a barrier, or is refused', () => {
  for (const spec of table.all.filter(({ write }) => write)) {
    assert.ok(['keyed', 'exclusive', 'refused'].includes(spec.handling), `${spec.name} is ${spec.handling}`);
  }
});

test('a command that only KeyDB has is refused', () => {
  // Redis 7 does not list these two, and closes the connection as well.
  const http = new Set(['post', 'host:']);
  for (const spec of table.all.filter(({ name, inSource, inTarget }) => !inSource && inTarget && !http.has(name)))
    assert.equal(spec.handling, 'refused', spec.name);
});

test('every name in the rules is a command', () => {
  assert.deepEqual(
    namesInRules().filter((name) => table.byName(name) === undefined),
    [],
  );
});

test('a command without keys and without a rule is an error, not a guess', () => {
  assert.throws(() => handlingOf('brandnew', false, false), /policy.ts has no rule for brandnew/);
  assert.equal(handlingOf('brandnew', true, false), 'keyed');
});

test('what is said to be answered by the proxy has an answer there, and nothing else has', () => {
  const local = table.all.filter(({ handling }) => handling === 'local').map(({ name }) => name);
  assert.deepEqual(Object.keys(LOCAL).sort(), local);
});

test('every refused command says so by its name, and what to do', () => {
  for (const spec of table.all.filter(({ handling }) => handling === 'refused')) {
    const text = refused(...spec.name.split('|'), 'argument') ?? '';
    const title = spec.name.replace('|', ' ').toUpperCase();
    assert.ok(text.startsWith(`ERR shadow-proxy: ${title} is not supported yet: `), `${spec.name}: ${text}`);
    assert.match(text, /: \S.{15,}$/);
    assert.doesNotMatch(text, /[\r\n]/);
  }
  assert.equal(
    refused('client', 'tracking', 'on'),
    'ERR shadow-proxy: CLIENT TRACKING is not supported yet: the proxy keeps no tracking table: switch client-side caching off',
  );
});

test('BLOCK is found where XREAD and XREADGROUP have it, and only there', () => {
  const at = (...args: string[]): number => blockOption(args.map((arg) => Buffer.from(arg)));
  assert.equal(at('XREAD', 'BLOCK', '0', 'STREAMS', 's', '$'), 1);
  assert.equal(at('xread', 'count', '1', 'block', '0', 'streams', 's', '$'), 3);
  assert.equal(at('XREADGROUP', 'GROUP', 'g', 'c', 'NOACK', 'Block', '5', 'STREAMS', 's', '>'), 5);
  assert.equal(at('XREAD', 'STREAMS', 'block', '0'), -1);
  assert.equal(at('XREAD', 'COUNT', 'block', 'STREAMS', 's', '0'), -1);
  assert.equal(at('XREADGROUP', 'GROUP', 'block', 'block', 'STREAMS', 'block', '>'), -1);
});

test('DEBUG is refused by its subcommand: what harms a server or changes its data, and what is not known', () => {
  for (const name of [
    'RELOAD',
    'LOADAOF',
    'POPULATE',
    'FLUSHALL',
    'SEGFAULT',
    'PANIC',
    'RESTART',
    'CRASH-AND-RECOVER',
    'OOM',
    'ASSERT',
    'BRANDNEW',
    'RELO\r\nAD',
  ]) {
    assert.match(
      refused('debug', name, 'x')!,
      /^ERR shadow-proxy: DEBUG [!-~]+ is not supported: it may stop a server, .*: connect directly/,
      name,
    );
  }
  for (const name of [
    'OBJECT',
    'sleep',
    'JMAP',
    'STRINGMATCH-LEN',
    'digest',
    'DIGEST-VALUE',
    'HTSTATS',
    'HTSTATS-KEY',
    'LISTPACK',
    'ZIPLIST',
    'SET-ACTIVE-EXPIRE',
    'HELP',
    'PROTOCOL',
    'ERROR',
  ]) {
    assert.equal(refused('DEBUG', name, 'x'), null, name);
  }
  assert.equal(refused('debug'), null);
});

test('every command that may block is known to', () => {
  const blocking = table.all.filter(({ flags }) => flags.includes('blocking'));
  assert.ok(blocking.length >= 10);
  for (const spec of blocking) assert.notEqual(spec.blocking, null, spec.name);
});
