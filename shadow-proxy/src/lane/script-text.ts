/**
 * What can be said of a Lua text by reading it: which commands it calls, and which keys they name. Where reading does
 * not tell, the answer is null.
 */
import { READS, WRITES } from '../command/keys.js';
import type { CommandTable } from '../command/table.js';

/** What the text calls the keys that its caller declares, and the other arguments. */
export interface Names {
  readonly keys: string;
  readonly args: string;
}

/** What a call does to a key, and how the text names that: as a text, as an argument, or as one of the declared keys. */
export interface NamedKey {
  readonly access: number;
  readonly name: { readonly text: string } | { readonly argument: number } | 'declared';
}

/** The keys that a text's calls name; null where some cannot be told. */
export interface NamedKeys {
  readonly reads: readonly NamedKey[] | null;
  readonly writes: readonly NamedKey[] | null;
}

export const UNTOLD: NamedKeys = { reads: null, writes: null };

export const withoutComments = (body: string): string => body.replace(/--\[\[[\s\S]*?\]\]/g, ' ').replace(/--[^\n]*/g, ' ');

/** What a text may use of `redis` besides calls, without anybody being the wiser. */
const HARMLESS = new Set(
  ('sha1hex setresp replicate_commands set_repl REPL_ALL REPL_NONE REPL_AOF REPL_SLAVE REPL_REPLICA error_reply status_reply log LOG_DEBUG LOG_VERBOSE ' +
    'LOG_NOTICE LOG_WARNING register_function')
    .split(' '),
);

/** The commands that a text calls, in lower case; null where reading does not tell. */
export function callsOf(code: string): ReadonlySet<string> | null {
  // Anything that hides a call: an alias, a computed name, another way to the interpreter. A metatable may even call when
  // the script is over, while its value is made a reply: KeyDB 6.3.4 ends at that.
  if (/setmetatable|loadstring|dofile|setfenv|getfenv|rawget|_G\b|redis\.sha1hex\s*\(\s*redis|\bmath\b(?!\s*\.)/.test(code)) return null;
  const calls = new Set<string>();
  const mentions = code.match(/\bredis\b|\bserver\b/g)?.length ?? 0;
  let understood = 0;
  for (const match of code.matchAll(/\bredis\s*\.\s*(\w+)\s*(\(\s*(["'])(\w+)\3)?/g)) {
    if (match[1] === 'call' || match[1] === 'pcall') {
      if (match[4] === undefined) return null;
      calls.add(match[4].toLowerCase());
    } else if (!HARMLESS.has(match[1])) {
      return null;
    }
    understood++;
  }
  return understood === mentions ? calls : null;
}

/** From so many on, `unpack` may give a call the 7,996 arguments that end KeyDB 6.3.4; more than 8,000 it gives to none. */
const MANY = 7_900;

/** How many arguments a script must be given before one of its calls may have too many for KeyDB; Infinity for never. */
export function tooManyFrom(code: string): number {
  if (!/\bunpack\b/.test(code)) return Infinity;
  return (code.match(/\b\d+\b/g) ?? []).some((number) => Number(number) >= MANY && Number(number) <= 8_000) ? 0 : MANY;
}

/** The keys that the calls of a text name, all of whose calls name their command. */
export function keysNamed(code: string, table: CommandTable, names: Names): NamedKeys {
  if (Object.values(names).some((name: string) => new RegExp(`\\b${name}\\s*(\\[[^\\]]*\\]\\s*)?(,[^=\\n;()]*)?=(?!=)`).test(code))) return UNTOLD;
  const reads: NamedKey[] = [];
  const writes: NamedKey[] = [];
  const untold = { reads: false, writes: false };
  for (const { name, args } of argumentsOfCalls(code)) {
    const spec = table.byName(name);
    // Behind a SELECT a name is another database's.
    if (spec === undefined || name === 'select') return UNTOLD;
    const keyless = spec.keySpecs.length === 0 && spec.readKeys === null;
    if (keyless && !spec.write) continue;
    const among = spec.singleKey === 1 ? args.slice(0, 1) : args;
    const found = keyless || spec.handling === 'barrier' || (name === 'copy' && args.length > 2) ? [null] : among.map((expression) => nameOf(code, expression, names));
    for (const each of found) {
      if (each === null) untold[spec.write ? 'writes' : 'reads'] = true;
      else if (spec.write) writes.push({ access: READS | WRITES, name: each });
      else reads.push({ access: READS, name: each });
    }
  }
  return { reads: untold.reads ? null : reads, writes: untold.writes ? null : writes };
}

/** A call of a command as it is written: the command's name, and the expressions of its arguments. */
interface Call {
  readonly name: string;
  readonly args: readonly string[];
}

function argumentsOfCalls(code: string): Call[] {
  return [...code.matchAll(/\bp?call\s*\(\s*(["'])(\w+)\1\s*/g)].map((match) => {
    const args: string[] = [];
    let from = match.index + match[0].length;
    let depth = 0;
    let quote = '';
    for (let at = from; at < code.length; at++) {
      const character = code[at];
      if (quote !== '') {
        if (character === '\\') at++;
        else if (character === quote) quote = '';
        continue;
      }
      if (character === '"' || character === "'") quote = character;
      else if ('([{'.includes(character)) depth++;
      const ends = depth === 0 && (character === ',' || character === ')');
      if (')]}'.includes(character)) depth--;
      if (!ends) continue;
      args.push(code.slice(from, at).trim());
      from = at + 1;
      if (character === ')') break;
    }
    // The first is what stands between the name and the first comma.
    return { name: match[2].toLowerCase(), args: args.slice(1) };
  });
}

/** Which key the expression stands for; null where it does not tell. */
function nameOf(code: string, expression: string, { keys, args }: Names): NamedKey['name'] | null {
  const literal = /^(["'])([^"'\\]*)\1$/.exec(expression);
  if (literal !== null) return { text: literal[2] };
  if (new RegExp(`^${keys}\\s*\\[[^[\\]]*\\]$|^(table\\s*\\.\\s*)?unpack\\s*\\(\\s*${keys}\\s*\\)$`).test(expression)) return 'declared';
  const argument = new RegExp(`^${args}\\s*\\[\\s*(\\d+)\\s*\\]$`).exec(expression);
  if (argument !== null) return { argument: Number(argument[1]) };
  if (!/^[A-Za-z_]\w*$/.test(expression)) return null;
  // A local name that is given one of these and nothing else.
  const uses = code.match(new RegExp(`\\b${expression}\\b(?=\\s*(,[^=\\n;]*)?=(?!=))|\\b(for|function)\\b[^\\n]*\\b${expression}\\b`, 'g')) ?? [];
  const given = new RegExp(`\\blocal\\s+${expression}\\s*=\\s*((?:${keys}|${args})\\s*\\[[^[\\]]*\\])(?!\\s*(\\.\\.|or\\b|and\\b))`).exec(code);
  return uses.length === 1 && given !== null ? nameOf(code, given[1], { keys, args }) : null;
}

/** Whether a call of SET or GETEX has more arguments than those without options, or as many as a table has. */
export function optionGiven(body: string): boolean {
  for (const [, name, rest] of body.matchAll(/call\s*\(\s*["'](set|getex)["']((?:[^()]|\([^()]*\))*)/gi)) {
    const commas = rest.replace(/\([^()]*\)|"[^"]*"|'[^']*'/g, '').split(',').length - 1;
    if (commas > (name.toLowerCase() === 'set' ? 2 : 1) || rest.includes('unpack')) return true;
  }
  return false;
}

/**
 * What the functions of a library call their two parameters; null where they do not agree, or where a function that is
 * no callback could be given something else under that name.
 */
export function parametersOf(code: string): Names | null {
  const callbacks = [...code.matchAll(/(?:\bregister_function\s*\(\s*(?:"[^"]*"|'[^']*')\s*,|\bcallback\s*=)\s*(?:function\s*\(([^)]*)\)|([A-Za-z_]\w*))/g)];
  const registered = code.match(/\bregister_function\b/g)?.length ?? 0;
  if (callbacks.length !== registered) return null;
  const lists: string[] = [];
  for (const [, inline, name] of callbacks) {
    if (inline !== undefined) {
      lists.push(normal(inline));
      continue;
    }
    const definitions = [...code.matchAll(new RegExp(`\\bfunction\\s+${name}\\s*\\(([^)]*)\\)|\\b${name}\\s*=\\s*function\\s*\\(([^)]*)\\)`, 'g'))];
    // Defined and registered, and nothing else: nobody calls it.
    const mentions = code.replace(/(["'])(?:(?!\1)[^\\\n]|\\.)*\1/g, ' ').match(new RegExp(`\\b${name}\\b`, 'g'))?.length ?? 0;
    if (definitions.length !== 1 || mentions !== 2) return null;
    lists.push(normal(definitions[0][1] ?? definitions[0][2]));
  }
  const given = lists.map((list) => list.split(',').filter(Boolean)).filter((list) => list.length > 0);
  const [keys = 'keys', args = 'args'] = given.find((list) => list.length > 1) ?? given[0] ?? [];
  if (!given.every((list) => list.every((name, i) => name === [keys, args][i]))) return null;
  // Any other function may be given something else under one of these names.
  const takers = [...code.matchAll(/\bfunction\b[^()\n]*\(([^)]*)\)/g)].filter(([, list]) => normal(list).split(',').some((name) => name === keys || name === args));
  return takers.length === given.length ? { keys, args } : null;
}

const normal = (list: string): string => list.replace(/\s/g, '');
