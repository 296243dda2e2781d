/** What `--help` and docs/cli.md say of each command. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command } from 'commander';
import { manualOf, withManual } from '../../../src/cli/manual.js';
import { operatorProgram } from '../../../src/cli/program.js';
import { proxyProgram } from '../../../src/cli/proxy-program.js';
import { renderCli } from '../../../src/docs/cli.js';

/** Commands that do something: those with others below them only list these. */
const ends = (command: Command): Command[] => {
  const below = command.createHelp().visibleCommands(command);
  return below.length === 0 ? [command] : below.filter((each) => each.name() !== 'help').flatMap(ends);
};
const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
const commands = [proxyProgram(), ...ends(await operatorProgram())];

test('every command has its exit codes and an example of itself', () => {
  assert.ok(commands.length > 17, `${commands.length}`);
  for (const command of commands) {
    const manual = manualOf(command);
    assert.ok(manual !== undefined, pathOf(command));
    assert.ok(manual.example.startsWith(pathOf(command)), manual.example);
    const codes = manual.exits.map(([code]) => code);
    assert.deepEqual([codes[0], codes.includes(2), new Set(codes).size], [0, true, codes.length], pathOf(command));
    assert.deepEqual(codes, [...codes].sort(), pathOf(command));
  }
});

test('the help of every command shows them, in 80 columns', () => {
  for (const command of commands) {
    let help = '';
    command.configureOutput({ writeOut: (text) => (help += text), getOutHelpWidth: () => 80 });
    command.outputHelp();
    const { example, exits } = manualOf(command)!;
    assert.ok(help.includes(`Example:\n  npx --no-install ${example}`), help);
    for (const [code, meaning] of exits) assert.ok(help.includes(`  ${code}  ${meaning}`), help);
    const long = help.split('\n').filter((line) => line.length > 80 && !line.includes(example));
    assert.deepEqual(long, [], pathOf(command));
  }
});

test('a command without exit codes is found out; one with an own default, allowed values or a bar is shown whole', () => {
  const program = new Command('kit').description('About.');
  const push = program.command('push').description('Push it').argument('<what>', 'a | b');
  assert.throws(() => renderCli([program]), /kit push has no exit codes and no example: add withManual/);
  withManual(push, 'kit push x', { 0: 'pushed', 3: 'unclear' });
  push.option('--far <m>', 'how far (default: as far as it goes)').option('--near <m>', 'how near', '2m');
  const page = renderCli([program]);
  for (const row of [
    '| `<what>` | **required** | a \\| b |',
    '| `--far <m>` | as far as it goes | how far |',
    '| `--near <m>` | `2m` | how near |',
    '| 0 | pushed |\n| 3 | unclear |',
  ])
    assert.ok(page.includes(row), `${row} in ${page}`);
});
