/** The keys that a profile's command touches: all of them must begin with the run's own prefix. */
import { keysOf, KeyList } from '../../shadow-proxy/src/command/keys.js';
import { CommandTable } from '../../shadow-proxy/src/command/table.js';
import { encodeCommand } from '../../shadow-proxy/src/resp/encode.js';
import { RequestParser } from '../../shadow-proxy/src/resp/request.js';
import { wordsOf } from './command.js';

const table = new CommandTable();

/**
 * Why a command is not allowed in a profile: each reason ends a sentence that begins with the command. Empty if it is
 * allowed.
 */
export function keysOutside(command: string): string[] {
  const words = wordsOf(command);
  const spec = find(words);
  if (spec === undefined) return [`${words[0]} is no command of Redis 7 or KeyDB`];
  const { inSource, inTarget } = spec;
  if (!inSource || !inTarget)
    return [`${words[0]} is known to ${inSource ? 'Redis' : 'KeyDB'} alone, so that the sides could not be compared`];
  const keys = keysIn(words);
  if (keys === null || keys.length === 0)
    return [`${words[0]} names no keys here: only commands on keys below the run's prefix may be sent`];
  const outside = keys.filter((key) => key !== '__key__' && !/^__prefix__[\w:.-]+$/.test(key));
  return outside.map((key) => `would touch the key "${key}": write __key__, or __prefix__ and a name`);
}

/** The load generator's name for key number `i`, from 1. */
export type Naming = (prefix: string, i: number) => string;

/** The parts of a profile that name keys. */
export interface Commands {
  readonly keys: { readonly count: number };
  readonly prefill: readonly string[];
  readonly commands: readonly { readonly command: string }[];
  readonly fallback?: string;
}

/** The names of all keys that a run leaves, each once. */
export function keyNames({ keys, prefill, commands, fallback }: Commands, prefix: string, naming: Naming): string[] {
  const texts = [...prefill, ...commands.map(({ command }) => command), ...(fallback ? [fallback] : [])];
  const named = new Set(texts.flatMap((text) => keysIn(wordsOf(text)) ?? []));
  const fixed = [...named].filter((key) => key !== '__key__').map((key) => key.replaceAll('__prefix__', prefix));
  const numbered = named.has('__key__') ? Array.from({ length: keys.count }, (_, i) => naming(prefix, i + 1)) : [];
  return [...fixed, ...numbered];
}

/** Null if the arguments do not show it. */
function keysIn(words: readonly string[]): string[] | null {
  const spec = find(words);
  const { frame, argStart, argEnd, argc } = parse(words);
  const list = new KeyList();
  const found = spec === undefined ? -1 : keysOf(spec, frame, argStart, argEnd, argc, list);
  return found < 0 ? null : list.index.slice(0, found).map((at) => words[at]);
}

function find(words: readonly string[]): ReturnType<CommandTable['find']> {
  const { frame, argStart, argEnd, argc } = parse(words);
  return table.find(frame, argStart, argEnd, argc);
}

function parse(words: readonly string[]): RequestParser {
  const parser = new RequestParser();
  parser.feed(encodeCommand(words));
  parser.next();
  return parser;
}
