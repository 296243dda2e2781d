/**
 * Scripts that came through the proxy: their texts, so that one known to one server only can be loaded on the
 * other, and what can be said of them by reading.
 *
 * Room: script: Lua scripts and functions: their texts, whether they can be replayed, which keys they changed.
 * Called by: pipeline, suspects, session, copy, shard.
 * Calls: resp, command, upstream.
 */
import { createHash } from 'node:crypto';
import { countAt } from '../command/keys.js';
import type { CommandTable } from '../command/table.js';
import { argumentsOf, wordOf } from '../resp/decode.js';
import { Functions } from './functions.js';
import { Routine, UNTOLD, type NamedKey } from './routine.js';
import type { Server } from '../upstream/server.js';

export class Script extends Routine {
  /** Whether a server has taken it from a client: run by its text, or loaded. */
  accepted = false;

  constructor(
    readonly body: Buffer,
    readonly sha: string,
  ) {
    super(body.toString('latin1'), false);
  }

  /** Since Redis 7 a script may begin with `#!lua flags=…`, which older servers do not compile. */
  get hasShebang(): boolean {
    return this.body[0] === HASH;
  }

  override repeatable(commands: ReadonlySet<string>): boolean {
    return super.repeatable(commands) && (!this.hasShebang || commands.has('fcall'));
  }
}

const HASH = '#'.charCodeAt(0);

/** The keys of one call of a script or function that it does not declare; null where its text does not tell them. */
export interface Undeclared {
  readonly reads: readonly Buffer[] | null;
  readonly writes: readonly Buffer[] | null;
}

const MAX_SCRIPTS = 10_000;

export class Scripts {
  /** Those that servers have. */
  readonly #bySha = new Map<string, Script>();
  /** Those that were read. */
  readonly #byBody = new Map<string, Script>();
  readonly functions = new Functions();
  /** What each server is known to have, under the run id for which that holds. */
  readonly #loaded = new Map<Server, { runId: string; shas: Set<string> }>();

  /** Notes a script's text, which is about to be sent to a server. */
  learn(body: Buffer): void {
    const script = this.#read(body);
    this.#bySha.set(script.sha, script);
  }

  #read(body: Buffer): Script {
    const text = body.toString('latin1');
    let script = this.#byBody.get(text);
    if (script === undefined) {
      if (this.#byBody.size >= MAX_SCRIPTS) this.#forget();
      script = new Script(Buffer.from(body), createHash('sha1').update(body).digest('hex'));
      this.#byBody.set(text, script);
    }
    return script;
  }

  /** Whether what `frame` runs may publish. */
  mayPublish(frame: Buffer): boolean {
    return this.find(argumentsOf(frame))?.mayPublish ?? true;
  }

  /** Whether what `frame` runs may swap databases: whatever keys it declares, it is about all of them. */
  swapDatabases(frame: Buffer): boolean {
    return this.find(argumentsOf(frame))?.swapsDatabases === true;
  }

  /**
   * What an EVAL, EVALSHA or FCALL runs; undefined for a digest that was never seen with its text, and for an unknown
   * function.
   */
  find(args: readonly Buffer[]): Routine | undefined {
    if (args.length < 3) return undefined;
    const name = wordOf(args[0]).toLowerCase();
    if (name.startsWith('fcall')) return this.functions.find(args[1].toString('latin1'));
    return name.startsWith('evalsha') ? this.#bySha.get(wordOf(args[1]).toLowerCase()) : this.#read(args[1]);
  }

  /** The undeclared keys of the call; of a digest that was never seen with its text, nothing is known. */
  undeclared(args: readonly Buffer[], table: CommandTable): Undeclared {
    const count = args.length < 3 ? -1 : countAt(args[2], 0, args[2].length);
    // The server refuses it.
    if (count < 0 || count > args.length - 3) return { reads: [], writes: [] };
    const routine = this.find(args);
    const { reads, writes } = routine?.named(table) ?? UNTOLD;
    const declared = new Set(args.slice(3, 3 + count).map((key) => key.toString('latin1')));
    const keysOf = (named: readonly NamedKey[]): Buffer[] => {
      const keys = named.flatMap(({ name }) =>
        name === 'declared'
          ? []
          : 'text' in name
            ? [Buffer.from(name.text, 'latin1')]
            : args.slice(2 + count + name.argument).slice(0, 1),
      );
      return keys.filter((key) => !declared.has(key.toString('latin1')));
    };
    return {
      reads: reads && keysOf(reads),
      writes: routine?.writesNothing(table) === true ? [] : writes && keysOf(writes),
    };
  }

  /** A server has run the script of this EVAL or EVALSHA, or loaded that of this SCRIPT LOAD. */
  accepted(args: readonly Buffer[]): void {
    const loads = wordOf(args[0]).toLowerCase() === 'script';
    const script = loads ? this.#read(args[2]) : this.find(args);
    if (script instanceof Script) script.accepted = true;
  }

  knownTo(server: Server, script: Script): boolean {
    const loaded = this.#loaded.get(server);
    return loaded !== undefined && loaded.runId === server.runId && loaded.shas.has(script.sha);
  }

  loadedOn(server: Server, script: Script): void {
    let loaded = this.#loaded.get(server);
    if (loaded === undefined || loaded.runId !== server.runId)
      this.#loaded.set(server, (loaded = { runId: server.runId, shas: new Set() }));
    loaded.shas.add(script.sha);
  }

  /** Gives the server the script. Where it refuses, it says so again when the script is to run. */
  async load(server: Server, script: Script): Promise<void> {
    await server.ask('SCRIPT', 'LOAD', script.body).catch(() => null);
    this.loadedOn(server, script);
  }

  /** The server has said that it does not know the script of this EVALSHA. */
  unknownTo(server: Server, args: readonly Buffer[]): void {
    const script = this.find(args);
    if (script instanceof Script) this.#loaded.get(server)?.shas.delete(script.sha);
  }

  /** It is not certain any more what the server has. */
  forget(server: Server): void {
    this.#loaded.delete(server);
  }

  /** After SCRIPT FLUSH nothing is loaded again. */
  flushed(): void {
    this.#forget();
  }

  #forget(): void {
    this.#bySha.clear();
    this.#byBody.clear();
    this.#loaded.clear();
  }
}
