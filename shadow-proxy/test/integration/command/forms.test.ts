/**
 * Forms that only one server supports: the table, against the two servers that it was made from; and how it is read.
 *
 * Needs real servers: the options that each server refuses, asked of both.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FORMS } from '../../../src/command/forms.generated.js';
import { formsOf, HARMLESS, supports } from '../../../src/command/forms.js';
import { probeForms } from '../../../src/command/generate-forms.js';
import { CommandTable } from '../../../src/command/table.js';
import { EVERY_COMMAND, withServers } from '../../support/servers.js';
import { needs } from '../../support/needs.js';

const table = new CommandTable();

test('the generated forms are what the real servers answer today', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  if (!(await needs(t, 'redis=7.0'))) return;
  await withServers(
    async ({ source, target }) => {
      const { forms, calls, silent } = await probeForms(source.url, target.url);
      const lines = (rows: typeof FORMS): string[] => rows.map((row) => row.join(' | '));
      const [now, then] = [lines(forms), lines(FORMS)];
      const changed = {
        more: now.filter((line) => !then.includes(line)),
        less: then.filter((line) => !now.includes(line)),
      };
      assert.deepEqual(changed, { more: [], less: [] }, 'run generate-forms.js again, and look at what changed');
      assert.ok(calls > 1_400, `${calls} calls`);
      // Of these nothing can be known: each needs a script that runs, a transaction, or tracking.
      assert.deepEqual(silent, [
        'client|caching',
        'discard',
        'exec',
        'function|kill',
        'latency|graph',
        'script|debug',
        'script|kill',
      ]);
    },
    { target: EVERY_COMMAND },
  );
});

test('each form is of a command of the table, and of all that the servers say not to have', () => {
  for (const [command, lacks, how, words] of FORMS) {
    const spec = table.byName(command);
    assert.ok(spec !== undefined, command);
    if (words !== '' || how !== 'refused') continue;
    assert.equal(lacks === 'target' ? spec.inTarget : spec.inSource, false, command);
  }
  const known = new Set(
    FORMS.filter(([, , how, words]) => words === '' && how === 'refused').map(([command]) => command),
  );
  const refusedAlways = ({ handling, name }: { handling: string; name: string }): boolean =>
    handling === 'refused' || name.endsWith('|help') || /^(cluster\|.+|function\|kill|host:|post|quit)$/.test(name);
  const lacking = table.all
    .filter((spec) => spec.subcommands === null && spec.inSource !== spec.inTarget && !refusedAlways(spec))
    .map(({ name }) => name);
  assert.deepEqual(
    lacking.filter((name) => !known.has(name)),
    [],
  );
  const names = new Set(table.all.flatMap(({ forms }) => (forms ?? []).map(({ name }) => name)));
  assert.deepEqual(
    Object.keys(HARMLESS).filter((name) => !names.has(name)),
    [],
  );
});

test('the version of a server and its own COMMAND decide what it supports', () => {
  const [expireGt] = formsOf('expire')!;
  const [lmpop] = formsOf('lmpop')!;
  const [shift] = formsOf('bitop')!;
  const unknown = { version: '', isKeydb: false, commands: new Set<string>() };
  const redis = (version: string, ...commands: string[]) => ({
    version,
    isKeydb: false,
    commands: new Set(['get', ...commands]),
  });
  const keydb = { version: '6.3.4', isKeydb: true, commands: new Set(['get']) };
  const cases = [expireGt, lmpop, shift].map((form) => [
    supports(form, form.name.split(' ')[0], 'source', unknown),
    supports(form, form.name.split(' ')[0], 'target', unknown),
    supports(form, form.name.split(' ')[0], 'source', redis('6.2.14')),
    supports(form, form.name.split(' ')[0], 'target', redis('7.2.4', 'lmpop')),
    supports(form, form.name.split(' ')[0], 'target', redis('10.0.0')),
    supports(form, form.name.split(' ')[0], 'target', keydb),
  ]);
  assert.deepEqual(cases, [
    [true, false, false, true, true, false],
    [true, false, false, true, false, false],
    [false, true, false, false, false, true],
  ]);
});
