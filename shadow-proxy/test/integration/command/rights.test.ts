/**
 * What both servers let a user with patterns do: the table, against the two servers that it was made from.
 *
 * Needs real servers: what each server lets a user with key patterns run.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { probeRights } from '../../../src/command/generate-rights.js';
import { allowsMore, refusedOption } from '../../../src/command/rights.js';
import { RIGHTS } from '../../../src/command/rights.generated.js';
import { CommandTable } from '../../../src/command/table.js';
import { WIDER_COMMANDS } from '../../../src/plan/plan.js';
import { encodeCommand } from '../../../src/resp/encode.js';
import { needs } from '../../support/needs.js';
import { EVERY_COMMAND, withServers } from '../../support/servers.js';

test('the generated rights are what the real servers enforce today', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  if (!(await needs(t, 'redis=7.0'))) return;
  await withServers(
    async ({ source, target }) => {
      const { rights, calls, checked } = await probeRights(source.url, target.url);
      assert.deepEqual(rights, RIGHTS, 'run generate-rights.js again, and look at what changed');
      assert.ok(calls > 3_000, `${calls} calls`);
      // Both servers check the names of these, so that the probe sees a refusal where there is one.
      assert.ok(checked.length > 150, `${checked.length} commands`);
      for (const name of [
        'get',
        'sort',
        'geosearchstore',
        'xreadgroup',
        'eval',
        'publish',
        'psubscribe',
        'object|encoding',
      ])
        assert.ok(checked.includes(name), name);
    },
    { target: EVERY_COMMAND },
  );
});

test('each command that KeyDB checks less is named by the gate users, and refused or looked at by the proxy', () => {
  const wider = new Set(RIGHTS.filter(([, who]) => who === 'target').map(([command]) => command));
  assert.deepEqual([...wider].sort(), [...WIDER_COMMANDS].sort());
  const table = new CommandTable();
  for (const name of wider) {
    const { rightsCheck, handling } = table.byName(name)!;
    assert.ok(rightsCheck !== null || handling === 'refused', name);
  }
});

test('only a Redis from 7.0 on checks more than KeyDB', () => {
  const [redis7, redis6, keydb] = [
    { version: '7.0.15', isKeydb: false },
    { version: '6.2.14', isKeydb: false },
    { version: '6.3.4', isKeydb: true },
  ];
  const unknown = { version: '', isKeydb: false };
  assert.deepEqual(
    [
      allowsMore(redis7, keydb),
      allowsMore(unknown, keydb),
      allowsMore(redis7, unknown),
      allowsMore(redis6, keydb),
      allowsMore(keydb, keydb),
      allowsMore(redis7, redis7),
    ],
    [true, true, true, false, false, false],
  );
});

test('the option for which Redis refuses a SORT is found behind any others', () => {
  for (const [call, option] of [
    ['SORT k', null],
    ['SORT k LIMIT 0 1 ALPHA DESC STORE get', null],
    ['SORT k BY nosort', null],
    ['SORT k by w:*->f get #', 'BY'],
    ['SORT k BY nosort LIMIT 0 1 gEt o:*', 'GET'],
    ['SORT k STORE by ASC GET #', 'GET'],
    ['SORT k GET', null],
  ] as const)
    assert.equal(refusedOption(encodeCommand(call.split(' '))), option, call);
});
