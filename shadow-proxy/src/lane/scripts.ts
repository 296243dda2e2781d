/**
 * Scripts that came through the proxy: their texts, so that one known to one server only can be loaded on the
 * other, and what can be said of them by reading.
 */
import { createHash } from 'node:crypto';
import type { CommandTable } from '../command/table.js';
import type { Server } from './server.js';

/** Commands whose reply or effect is not the same on two servers with the same data, or not in the same order. */
const NOT_REPEATABLE = new Set(
  ('time randomkey srandmember spop hrandfield zrandmember scan sscan hscan zscan info keys dbsize lastsave object memory debug config client ' +
    'smembers sinter sunion sdiff hkeys hvals hgetall dump restore xadd xtrim xclaim xautoclaim xreadgroup xinfo xpending incrbyfloat hincrbyfloat ' +
    'ttl pttl expiretime pexpiretime publish spublish')
    .split(' '),
);

/** A call of a command as it is written: the command's name, and the expressions of its arguments. */
interface Call {
  readonly name: string;
  readonly args: readonly string[];
}

export class Script {
  readonly #code: string;
  readonly #calls: ReadonlySet<string> | null;
  /** Whether what it does may depend on more than the data and the arguments. */
  readonly #chance: boolean;
  /** The keys that its writes name as texts; null where one may be written that is neither so named nor declared. */
  #named: ReadonlySet<string> | null | undefined;
  /** Whether it may give a key a time to live that counts from the moment it runs. */
  readonly setsTtl: boolean;

  constructor(
    readonly body: Buffer,
    readonly sha: string,
  ) {
    const text = body.toString('latin1');
    this.#code = withoutComments(text);
    this.#calls = callsOf(this.#code);
    this.#chance = /\bmath\s*\.\s*random|redis\s*\.\s*(setresp|replicate_commands|set_repl)\b/.test(this.#code);
    this.setsTtl = this.#calls === null || ['expire', 'pexpire', 'setex', 'psetex'].some((name) => this.#calls!.has(name)) || optionGiven(text);
  }

  /** Whether it does the same on a server with the same data that knows `commands`. */
  repeatable(commands: ReadonlySet<string>): boolean {
    if (this.#calls === null || this.#chance) return false;
    for (const name of this.#calls) {
      if (NOT_REPEATABLE.has(name)) return false;
      if (commands.size > 0 && !commands.has(name)) return false;
    }
    return true;
  }

  /** Whether, as far as its text tells, every key that it writes is among the `declared` ones. */
  keepsTo(declared: ReadonlySet<string>, table: CommandTable): boolean {
    if (this.#named === undefined) this.#named = this.#calls === null ? null : keysNamed(this.#code, table);
    return this.#named !== null && [...this.#named].every((key) => declared.has(key));
  }

  /** Whether it calls any command at all. */
  get callsCommands(): boolean {
    return this.#calls === null || this.#calls.size > 0;
  }
}

const withoutComments = (body: string): string => body.replace(/--\[\[[\s\S]*?\]\]/g, ' ').replace(/--[^\n]*/g, ' ');

/** The commands that a script calls, in lower case; null where reading does not tell. */
function callsOf(code: string): ReadonlySet<string> | null {
  // Anything that hides a call: an alias, a computed name, another way to the interpreter.
  if (/loadstring|dofile|setfenv|getfenv|rawget|_G\b|redis\.sha1hex\s*\(\s*redis|\bmath\b(?!\s*\.)/.test(code)) return null;
  const calls = new Set<string>();
  const mentions = code.match(/\bredis\b|\bserver\b/g)?.length ?? 0;
  let understood = 0;
  for (const match of code.matchAll(/\bredis\s*\.\s*(\w+)\s*(\(\s*(["'])(\w+)\3)?/g)) {
    if (match[1] === 'call' || match[1] === 'pcall') {
      if (match[4] === undefined) return null;
      calls.add(match[4].toLowerCase());
    } else if (!['sha1hex', 'setresp', 'replicate_commands', 'set_repl', 'REPL_ALL', 'REPL_NONE', 'REPL_AOF', 'REPL_SLAVE', 'REPL_REPLICA', 'error_reply', 'status_reply', 'log', 'LOG_DEBUG', 'LOG_VERBOSE', 'LOG_NOTICE', 'LOG_WARNING'].includes(match[1])) {
      return null;
    }
    understood++;
  }
  return understood === mentions ? calls : null;
}

/** The keys that the writes of a script name as texts; null where one may be written that is not so named, nor of KEYS. */
function keysNamed(code: string, table: CommandTable): ReadonlySet<string> | null {
  const named = new Set<string>();
  for (const { name, args } of argumentsOfCalls(code)) {
    const spec = table.byName(name);
    if (spec === undefined) return null;
    if (!spec.write) continue;
    for (const expression of spec.singleKey === 1 ? args.slice(0, 1) : args) {
      const literal = /^(["'])([^"'\\]*)\1$/.exec(expression);
      if (literal !== null) named.add(literal[2]);
      else if (!standsForKey(code, expression)) return null;
    }
  }
  return named;
}

/** The calls of a script all of whose calls name their command. */
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

/** Whether the expression is an element of KEYS, all of them, or a local name that is given one and nothing else. */
function standsForKey(code: string, expression: string): boolean {
  if (/^KEYS\s*\[[^[\]]*\]$|^(table\s*\.\s*)?unpack\s*\(\s*KEYS\s*\)$/.test(expression)) return true;
  if (!/^[A-Za-z_]\w*$/.test(expression)) return false;
  const uses = code.match(new RegExp(`\\b${expression}\\b(?=\\s*(,[^=\\n;]*)?=(?!=))|\\b(for|function)\\b[^\\n]*\\b${expression}\\b`, 'g')) ?? [];
  return uses.length === 1 && new RegExp(`\\blocal\\s+${expression}\\s*=\\s*KEYS\\s*\\[[^[\\]]*\\](?!\\s*(\\.\\.|or\\b|and\\b))`).test(code);
}

/** Whether a call of SET or GETEX has more arguments than those without options, or as many as a table has. */
function optionGiven(body: string): boolean {
  for (const [, name, rest] of body.matchAll(/call\s*\(\s*["'](set|getex)["']((?:[^()]|\([^()]*\))*)/gi)) {
    const commas = rest.replace(/\([^()]*\)|"[^"]*"|'[^']*'/g, '').split(',').length - 1;
    if (commas > (name.toLowerCase() === 'set' ? 2 : 1) || rest.includes('unpack')) return true;
  }
  return false;
}

const MAX_SCRIPTS = 10_000;

export class Scripts {
  readonly #bySha = new Map<string, Script>();
  readonly #byBody = new Map<string, Script>();
  /** What each server is known to have, under the run id for which that holds. */
  readonly #loaded = new Map<Server, { runId: string; shas: Set<string> }>();

  /** Notes a script's text. */
  learn(body: Buffer): Script {
    const text = body.toString('latin1');
    let script = this.#byBody.get(text);
    if (script === undefined) {
      if (this.#bySha.size >= MAX_SCRIPTS) this.#forget();
      script = new Script(Buffer.from(body), createHash('sha1').update(body).digest('hex'));
      this.#byBody.set(text, script);
      this.#bySha.set(script.sha, script);
    }
    return script;
  }

  /** The script that an EVAL or EVALSHA runs; undefined for a digest that was never seen with its text. */
  find(args: readonly Buffer[]): Script | undefined {
    const bySha = args[0].toString('latin1').toLowerCase().startsWith('evalsha');
    return bySha ? this.#bySha.get(args[1].toString('latin1').toLowerCase()) : this.learn(args[1]);
  }

  knownTo(server: Server, script: Script): boolean {
    const loaded = this.#loaded.get(server);
    return loaded !== undefined && loaded.runId === server.runId && loaded.shas.has(script.sha);
  }

  loadedOn(server: Server, script: Script): void {
    let loaded = this.#loaded.get(server);
    if (loaded === undefined || loaded.runId !== server.runId) this.#loaded.set(server, (loaded = { runId: server.runId, shas: new Set() }));
    loaded.shas.add(script.sha);
  }

  /** It is not certain any more what the server has. */
  forget(server: Server): void {
    this.#loaded.delete(server);
  }

  /** After SCRIPT FLUSH. */
  flushed(): void {
    this.#loaded.clear();
  }

  #forget(): void {
    this.#bySha.clear();
    this.#byBody.clear();
    this.#loaded.clear();
  }
}
