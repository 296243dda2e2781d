/** Which commands are loaded: to load them all takes longer than most of them run. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { operatorProgram } from '../../../src/cli/program.js';

const loadedFor = async (name?: string): Promise<string[]> =>
  (await operatorProgram(name)).commands.map((command) => command.name());

test('A command loads itself, --version loads none, and anything else loads all', async () => {
  assert.deepEqual(await loadedFor('status'), ['status']);
  assert.deepEqual(await loadedFor('--version'), []);
  const all = await loadedFor();
  assert.ok(all.length > 20);
  assert.deepEqual(await loadedFor('statsu'), all);
});
