/**
 * `shadow-compare completion`: a script that lets a shell complete commands, options and their values.
 *
 * cspell:ignore compdef bashcompinit CWORD esac COMPREPLY compgen
 */
import { Argument, type Command, type Option } from 'commander';
import { withManual } from './manual.js';
import { stdout } from './output.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** Values that the script asks `complete` for, because they depend on the plan, or on the release. */
export const COMPLETED = ['workloads', 'pages'] as const;
export type Completed = (typeof COMPLETED)[number];

/** The kind of an argument or of an option's value; undefined if the script has all possible values. */
const KINDS: Readonly<Record<string, Completed>> = {
  '<workload>': 'workloads',
  '[workload]': 'workloads',
  '--workload': 'workloads',
  'runbook [name]': 'pages',
};

/** @param program with all of its commands */
export function addCompletion(program: Command): void {
  const command = program
    .command('completion')
    .description('Print a script that completes commands, options and their values in a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .action((shell: Shell) => void stdout.write(completionOf(program, shell)));
  withManual(command, 'shadow-compare completion bash', { 0: 'printed' });
}

/** A command and its subcommands. */
interface Node {
  /** The words of the command, such as `local up`; empty for the program. */
  readonly path: string;
  readonly command: Command;
  readonly below: readonly Command[];
  readonly options: readonly Option[];
}

export function completionOf(program: Command, shell: Shell): string {
  const nodes = nodesOf(program, '');
  if (shell === 'fish') return fish(program.name(), nodes);
  const script = bash(program.name(), nodes);
  return shell === 'bash'
    ? script
    : `#compdef ${program.name()}\nautoload -U +X bashcompinit && bashcompinit\n${script}`;
}

function nodesOf(command: Command, path: string): Node[] {
  const help = command.createHelp();
  const below = help.visibleCommands(command).filter((each) => each.name() !== 'help');
  const node = { path, command, below, options: help.visibleOptions(command) };
  return [node, ...below.flatMap((each) => nodesOf(each, `${path} ${each.name()}`.trim()))];
}

const takesValue = ({ required, optional }: Option): boolean => required || optional;
const choicesOf = ({ argChoices = [] }: Option | Argument): readonly string[] => argChoices;
const kindOf = ({ path, command }: Node): Completed | undefined =>
  command.registeredArguments
    .map((argument) => (argument.required ? `<${argument.name()}>` : `[${argument.name()}]`))
    .map((name) => KINDS[name] ?? KINDS[`${path} ${name}`])
    .find((kind) => kind !== undefined);
const argumentsOf = ({ command }: Node): string[] => command.registeredArguments.flatMap(choicesOf);

/** If there is no suggestion, bash completes file names. */
function bash(name: string, nodes: readonly Node[]): string {
  const run = `_${name.replaceAll('-', '_')}`;
  const steps = nodes
    .filter(({ path }) => path !== '')
    .map(({ path }) => `'${path.includes(' ') ? path : ` ${path}`}'`);
  const values = nodes.flatMap(({ path, options }) =>
    options
      .filter(takesValue)
      .map(
        (option) =>
          `    '${path} ${option.long!}') words='${choicesOf(option).join(' ')}'${asked(KINDS[option.long!])} ;;`,
      ),
  );
  const words = nodes.map((node) => {
    const offered = [...node.below.map((each) => each.name()), ...argumentsOf(node), ...node.options.map(longOf)];
    return `      '${node.path}') words='${offered.join(' ')}'${asked(kindOf(node))} ;;`;
  });
  return `${run}() {
  local cur=\${COMP_WORDS[COMP_CWORD]} path='' words='' kind='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path \${COMP_WORDS[i]}" in
      ${steps.join(' | ')}) path="\${path:+$path }\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path \${COMP_WORDS[COMP_CWORD - 1]}" in
${values.join('\n')}
    *) case "$path" in
${words.join('\n')}
    esac ;;
  esac
  if [[ -n $kind && $cur != -* ]]; then
    words="$("\${COMP_WORDS[0]}" complete "$kind" -- "\${COMP_WORDS[@]:1}" 2>/dev/null) $words"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F ${run} ${name}
`;
}

const asked = (kind: Completed | undefined): string => (kind === undefined ? '' : ` kind=${kind}`);
const longOf = ({ long }: Option): string => long!;

function fish(name: string, nodes: readonly Node[]): string {
  const lines = nodes.flatMap((node) => {
    const when = `complete -c ${name} -n ${quoted(conditionOf(node))}`;
    return [
      ...node.below.map((each) => `${when} -f -a ${each.name()} -d ${quoted(each.description())}`),
      ...argumentsOf(node).map((choice) => `${when} -f -a ${choice}`),
      ...[kindOf(node)].flatMap((kind) => (kind === undefined ? [] : `${when} -f -a ${quoted(asking(name, kind))}`)),
      ...node.options.map((option) => {
        const kind = KINDS[option.long!];
        const choices = kind === undefined ? choicesOf(option) : [asking(name, kind)];
        const value = choices.length > 0 ? ` -x -a ${quoted(choices.join(' '))}` : takesValue(option) ? ' -r' : '';
        return `${when} -l ${option.long!.slice(2)}${value} -d ${quoted(option.description)}`;
      }),
    ];
  });
  return `${lines.join('\n')}\n`;
}

const asking = (name: string, kind: Completed): string =>
  `(${name} complete ${kind} -- (commandline -opc)[2..] 2>/dev/null)`;

/** The condition in fish: after this command, and before any of its subcommands. */
function conditionOf({ path, below }: Node): string {
  const seen = path.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`);
  const none = `not __fish_seen_subcommand_from ${below.map((each) => each.name()).join(' ')}`;
  return path === '' ? '__fish_use_subcommand' : [...seen, ...(below.length > 0 ? [none] : [])].join('; and ');
}

const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;
