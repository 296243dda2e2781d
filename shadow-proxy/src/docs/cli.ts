/** docs/cli.md: both programs and their commands, from commander's definitions (`npm run docs:cli`). */
import type { Argument, Command, Option } from 'commander';
import { exitCode } from '../cli/exit.js';
import { USAGE, manualOf } from '../cli/manual.js';
import { CHECKOUT } from '../text/invocation.js';

const ABOUT = `# Command line

<!-- Written by \`npm run docs:cli\` from shadow-proxy/src/cli. Do not edit. -->

\`shadow-proxy\` is the daemon that clients connect to. \`shadow-compare\` is the operator's program.
\`--help\` shows the same text as this page.

## Exit codes

| code | meaning |
| --- | --- |
| 0 | success: what was asked for was done, or what was checked holds |
| 1 | failure: it does not hold, or it was refused |
| 2 | ${USAGE}: nothing was done |
| 3 | inconclusive: nothing, or not enough, was looked at, or an unexpected error occurred |
| 130 | stopped with Ctrl-C |

2 and 130 mean the same for every command. What 0, 1 and 3 mean is listed for each command. Errors are sentences without
a stack. With \`SHADOW_PROXY_STACK=1\` in the environment they have one, for a report of a fault of the program.

## Shell completion

The Tab key completes commands, options and their values after these lines in \`~/.bashrc\` or \`~/.zshrc\`:

\`\`\`sh
alias shadow-compare='npx --no-install shadow-compare'     # leave this out where shadow-compare is on the PATH
source <(npx --no-install shadow-compare completion bash)  # or zsh
\`\`\`

For fish, write the script into its own file:

\`\`\`sh
npx --no-install shadow-compare completion fish > ~/.config/fish/completions/shadow-compare.fish
\`\`\``;

/** The page, as Markdown. @throws {Error} if a command has no exit codes or no example (`withManual`) */
export const renderCli = (programs: readonly Command[]): string =>
  `${[ABOUT, ...programs.flatMap((program) => sectionsOf(program))].join('\n\n')}\n`;

/** A command and its subcommands, in the order of the help. */
function sectionsOf(command: Command): string[] {
  const below = command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== 'help');
  const heading = `${command.parent === null ? '##' : '###'} ${pathOf(command)}`;
  const tables = [table('argument', command.registeredArguments.map(argumentRow)), table('option', optionsOf(command))];
  if (below.length > 0)
    return [
      [heading, command.description(), `Commands: ${below.map(linkTo).join(', ')}.`, ...tables]
        .filter((part) => part !== '')
        .join('\n\n'),
      ...below.flatMap(sectionsOf),
    ];
  const manual = manualOf(command);
  if (manual === undefined) throw new Error(`${pathOf(command)} has no exit codes and no example: add withManual`);
  const exits = manual.exits
    .filter(([code]) => code !== exitCode.usage)
    .map(([code, meaning]) => `| ${code} | ${escape(meaning)} |`);
  return [
    [
      heading,
      `${command.description().replace(/\.$/, '')}.`,
      `\`\`\`text\n${pathOf(command)} ${command.usage()}\n\`\`\``,
      ...tables,
      `| exit code | meaning |\n| --- | --- |\n${exits.join('\n')}`,
      `\`\`\`\n${CHECKOUT} ${manual.example}\n\`\`\``,
    ]
      .filter((part) => part !== '')
      .join('\n\n'),
  ];
}

const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
const linkTo = (command: Command): string => `[\`${command.name()}\`](#${pathOf(command).replaceAll(' ', '-')})`;

type Row = readonly [name: string, byDefault: string, meaning: string];

const table = (what: string, rows: readonly Row[]): string =>
  rows.length === 0
    ? ''
    : `| ${what} | default | meaning |\n| --- | --- | --- |\n${rows.map((row) => `| ${row.join(' | ')} |`).join('\n')}`;

const optionsOf = (command: Command): Row[] => command.options.filter(({ hidden }) => !hidden).map(optionRow);

function optionRow(option: Option): Row {
  const { flags, mandatory, defaultValue, defaultValueDescription, argChoices, description } = option;
  const [text, stated] = parted(description);
  const empty = defaultValue === undefined || (Array.isArray(defaultValue) && defaultValue.length === 0);
  const value = defaultValueDescription ?? (empty || option.negate ? undefined : String(defaultValue));
  const byDefault = mandatory ? '**required**' : value === undefined ? (stated ?? '–') : `\`${value}\``;
  return [`\`${flags}\``, escape(byDefault), `${escape(text)}${choices(argChoices)}`];
}

function argumentRow(argument: Argument): Row {
  const [text, stated] = parted(argument.description);
  const named = `${argument.name()}${argument.variadic ? '...' : ''}`;
  const name = argument.required ? `<${named}>` : `[${named}]`;
  return [
    `\`${name}\``,
    argument.required ? '**required**' : (stated ?? '–'),
    `${escape(text)}${choices(argument.argChoices)}`,
  ];
}

/** A default that commander does not know is part of the description. */
function parted(description: string): [text: string, byDefault: string | undefined] {
  const [, text, byDefault] = /^([^]*?) \(default: ([^]*)\)$/.exec(description) ?? [];
  return text === undefined ? [description, undefined] : [text, byDefault];
}

const choices = (allowed: readonly string[] | undefined): string =>
  allowed === undefined ? '' : `: ${allowed.map((value) => `\`${value}\``).join(', ')}`;

const escape = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
