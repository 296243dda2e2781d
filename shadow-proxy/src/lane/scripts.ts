/**
 * Scripts that came through the proxy: their texts, so that one known to one server only can be loaded on the
 * other, and what can be said of them by reading.
 */
import { createHash } from 'node:crypto';
import type { Server } from './server.js';

/** Commands whose reply or effect is not the same on two servers with the same data, or not in the same order. */
const NOT_REPEATABLE = new Set(
  ('time randomkey srandmember spop hrandfield zrandmember scan sscan hscan zscan info keys dbsize lastsave object memory debug config client ' +
    'smembers sinter sunion sdiff hkeys hvals hgetall dump restore xadd xtrim xclaim xautoclaim xreadgroup xinfo xpending incrbyfloat hincrbyfloat ' +
    'ttl pttl expiretime pexpiretime publish spublish')
    .split(' '),
);

export class Script {
  readonly #calls: ReadonlySet<string> | null;
  /** Whether it may give a key a time to live that counts from the moment it runs. */
  readonly setsTtl: boolean;

  constructor(
    readonly body: Buffer,
    readonly sha: string,
  ) {
    const text = body.toString('latin1');
    this.#calls = callsOf(text);
    this.setsTtl = this.#calls === null || ['expire', 'pexpire', 'setex', 'psetex'].some((name) => this.#calls!.has(name)) || optionGiven(text);
  }

  /** Whether it does the same on a server with the same data that knows `commands`. */
  repeatable(commands: ReadonlySet<string>): boolean {
    if (this.#calls === null) return false;
    for (const name of this.#calls) {
      if (NOT_REPEATABLE.has(name)) return false;
      if (commands.size > 0 && !commands.has(name)) return false;
    }
    return true;
  }

  /** Whether it calls any command at all. */
  get callsCommands(): boolean {
    return this.#calls === null || this.#calls.size > 0;
  }
}

/** The commands that a script calls, in lower case; null where reading does not tell. */
function callsOf(body: string): ReadonlySet<string> | null {
  const code = body.replace(/--\[\[[\s\S]*?\]\]/g, ' ').replace(/--[^\n]*/g, ' ');
  // Anything that hides a call: an alias, a computed name, another way to the interpreter, the clock or chance.
  if (/loadstring|dofile|setfenv|getfenv|rawget|_G\b|math\.random|redis\.setresp|redis\.replicate_commands|redis\.set_repl|redis\.sha1hex\s*\(\s*redis/.test(code)) return null;
  const calls = new Set<string>();
  const mentions = code.match(/\bredis\b|\bserver\b/g)?.length ?? 0;
  let understood = 0;
  for (const match of code.matchAll(/\bredis\s*\.\s*(\w+)\s*(\(\s*(["'])(\w+)\3)?/g)) {
    if (match[1] === 'call' || match[1] === 'pcall') {
      if (match[4] === undefined) return null;
      calls.add(match[4].toLowerCase());
    } else if (!['sha1hex', 'error_reply', 'status_reply', 'log', 'LOG_DEBUG', 'LOG_VERBOSE', 'LOG_NOTICE', 'LOG_WARNING'].includes(match[1])) {
      return null;
    }
    understood++;
  }
  return understood === mentions ? calls : null;
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
