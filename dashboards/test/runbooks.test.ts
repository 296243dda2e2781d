/** The incident runbooks tell of alerts that are there, with commands, files and links that are. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { Command } from 'commander';
import { addAccept } from '../../shadow-proxy/src/cli/accept.js';
import { addBackfill } from '../../shadow-proxy/src/cli/backfill.js';
import { addGuard } from '../../shadow-proxy/src/cli/guard.js';
import { addPromote } from '../../shadow-proxy/src/cli/promote.js';
import { addReport } from '../../shadow-proxy/src/cli/report.js';
import { addRollback } from '../../shadow-proxy/src/cli/rollback.js';
import { addStage } from '../../shadow-proxy/src/cli/stage.js';
import { addStatus } from '../../shadow-proxy/src/cli/status.js';
import { addVerify } from '../../shadow-proxy/src/cli/verify.js';
import { alerts, filesIn, read, ROOT, RUNBOOKS } from './files.js';

const program = new Command();
for (const add of [addAccept, addBackfill, addGuard, addPromote, addReport, addRollback, addStage, addStatus, addVerify]) add(program);

/** Those of alerts are named as these, in capitals. */
const incidents = filesIn(RUNBOOKS, '.md').filter((path) => /^[A-Z][a-z]/.test(basename(path)));

/** What is written as code: in fences, and in lines. */
function codeOf(text: string): string[] {
  const fenced = [...text.matchAll(/^ *```\n([\s\S]*?)^ *```/gm)].flatMap(([, block]) => block.split('\n').map((line) => line.trim()));
  const inline = [...text.replaceAll(/^ *```[\s\S]*?^ *```/gm, '').matchAll(/`([^`]+)`/g)].map(([, code]) => code.replaceAll(/\s+/g, ' '));
  return [...fenced, ...inline];
}

test('there is an alert for each of them', () => {
  assert.deepEqual(incidents.map((path) => basename(path, '.md')), [...new Set(alerts().map(({ alert }) => alert))].sort());
});

test('every command of shadow-compare is one, with options that it has', () => {
  const commands = incidents.flatMap((path) => codeOf(read(path)).filter((code) => /^(npx )?shadow-compare [a-z]/.test(code)).map((code) => [basename(path), code] as const));
  assert.ok(commands.length > 40, `${commands.length}`);
  for (const [file, code] of commands) {
    const [name, ...words] = code.replace(/^(npx )?shadow-compare /, '').split(' ');
    const command = program.commands.find((each) => each.name() === name);
    assert.ok(command, `${file}: ${code}`);
    for (const option of words.filter((word) => word.startsWith('--'))) {
      assert.ok(command.options.some(({ long }) => long === option), `${file}: ${name} has no ${option}`);
    }
    const asked = command.registeredArguments.some(({ required }) => required);
    if (asked) assert.match(words[0] ?? '', /^[A-Z…]/, `${file}: ${code} needs an argument`);
  }
});

test('every playbook and every page that they name is there', () => {
  for (const path of incidents) {
    const text = read(path);
    for (const [, playbook] of text.matchAll(/ansible-playbook (\S+\.yml)/g)) assert.ok(existsSync(join(ROOT, 'ansible', playbook)), `${basename(path)}: ${playbook}`);
    for (const [, page] of text.matchAll(/\]\(([^)#]+)[^)]*\)/g)) assert.ok(existsSync(join(dirname(path), page)), `${basename(path)}: ${page}`);
  }
});
