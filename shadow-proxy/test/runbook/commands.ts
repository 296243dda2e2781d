/** The commands that a page names, held against the programs as they are. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommanderError, type Command } from 'commander';
import { Lexer, type Token, type Tokens, walkTokens } from 'marked';
import { parse } from 'yaml';
import { operatorProgram } from '../../src/cli/program.js';
import { ROOT } from '../../src/runbook/shelf.js';

/** Lines of its fences, the commands of its steps, and inline code. */
export function commandsIn(markdown: string): readonly string[] {
  const found: string[] = [];
  void walkTokens(Lexer.lex(markdown), (token: Token) => {
    if (token.type === 'codespan') found.push((token as Tokens.Codespan).text);
    if (token.type === 'code') found.push(...linesOf(token as Tokens.Code));
  });
  return found.flatMap((line) => line.split(/&&|;|\|\||\|(?![^[]*\])| &(?: |$)/)).map((line) => line.trim()).filter((line) => line !== '');
}

function linesOf({ lang = '', text }: Tokens.Code): readonly string[] {
  if (lang === 'text output') return [];
  if (lang === 'yaml step') {
    const { run, undo = '' } = parse(text) as { run: string; undo?: string };
    return `${run}\n${undo}`.split('\n');
  }
  return text.split('\n').map((line) => line.replace(/ # .*| {2,}#.*/, ''));
}

/** Undefined for what is none of our commands, null for one that is right, else what is wrong. */
export function problemOf(command: string): string | null | undefined {
  const words = [...command.replace(/[[\]]/g, ' ').replace(/[…]/g, 'X').matchAll(/"([^"]*)"|'([^']*)'|([^\s"']+)/g)].map(([, double, single, bare]) => double ?? single ?? bare);
  const at = words[0] === 'npx' ? 1 : 0;
  const [program, ...rest] = words.slice(at);
  if (program === 'shadow-compare' && rest.length > 0) return parses(operatorProgram(), rest);
  if (program === 'shadow-proxy' && rest.length > 0) return rest.filter((word) => word.startsWith('--')).find((option) => !proxyOptions.includes(option))?.concat(' is no option of shadow-proxy') ?? null;
  if (program === 'npm' && rest[0] === 'run') return scripts.includes(rest[1]) ? null : `there is no script ${rest[1]}`;
  if (program === 'ansible-playbook') {
    const playbook = rest.find((word) => word.endsWith('.yml') && !word.startsWith('@'))!;
    return [join(ROOT, 'ansible', playbook), join(ROOT, playbook)].some(existsSync) ? null : `there is no ${playbook}`;
  }
  if (program === 'terraform' && rest[0]?.startsWith('-chdir=')) return existsSync(join(ROOT, rest[0].slice('-chdir='.length))) ? null : `there is no ${rest[0]}`;
  return undefined;
}

const { scripts: all } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
const scripts = Object.keys(all);
/** Its program parses at once when it is imported. */
const proxyOptions = [...readFileSync(join(ROOT, 'shadow-proxy/src/main.ts'), 'utf8').matchAll(/'(--[a-z-]+)/g)].map(([, option]) => option);

function parses(program: Command, words: readonly string[]): string | null {
  const [name, ...rest] = words;
  const command = program.commands.find((each) => each.name() === name);
  if (command === undefined) return `there is no ${program.name()} ${name}`;
  if (command.commands.length > 0 && rest.length > 0) return parses(command, rest);
  try {
    const { operands, unknown } = command.configureOutput({ writeErr: () => undefined, outputError: () => undefined }).parseOptions([...rest]);
    if (unknown.length > 0) return `${unknown[0]} is no option of it`;
    const most = command.registeredArguments.some(({ variadic }) => variadic) ? Infinity : command.registeredArguments.length;
    return operands.length > most ? `it takes ${most} arguments` : null;
  } catch (error) {
    if (error instanceof CommanderError) return error.message;
    throw error;
  }
}
