/**
 * The files of releases after 7.0, against the server that the tests have, where it is one of them.
 *
 * Needs real servers: COMMAND of a newer release, where one is installed.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generateRelease } from '../../../src/command/generate-release.js';
import { RELEASES } from '../../../src/command/releases.js';
import { CommandTable } from '../../../src/command/table.js';
import { EVERY_COMMAND, withServers } from '../../support/servers.js';

test('the file of a release is what its server says today, and nothing of it is unknown to the proxy', async (t) => {
  await withServers(
    async ({ source, target }) => {
      const { name, version, commands, forms, unknown } = await generateRelease(source.url, target.url);
      const release = RELEASES.find((each) => each.name === name && each.version === version);
      if (release === undefined) return t.skip(`there is no file for ${name} ${version}`);
      assert.deepEqual(commands, release.commands, 'run generate-release.js again, and look at what changed');
      assert.deepEqual(forms, release.forms, 'run generate-release.js again, and look at what changed');
      assert.deepEqual(
        unknown.filter((line) => !line.includes('a write without an effect')),
        [],
      );
    },
    { target: EVERY_COMMAND },
  );
});

test('each command of a release is in the table once, and its writes have an effect', () => {
  const { all } = new CommandTable();
  const names = new Set(all.map(({ name }) => name));
  assert.equal(names.size, all.length);
  for (const row of RELEASES.flatMap(({ commands }) => commands)) {
    const spec = all.find(({ name }) => name === row[0])!;
    assert.equal(spec.inTarget, false, spec.name);
    if (spec.write && spec.handling === 'keyed') assert.ok(spec.effect !== null, spec.name);
  }
});
