/**
 * Scripts that came through the proxy: their texts, so that a script that only one server has can be loaded on the
 * other, and what reading the texts shows.
 *
 * Room: script: Lua scripts and functions: their texts, whether they can be replayed, which keys they changed.
 * Called by: pipeline, suspects, session, copy, shard.
 * Calls: io, resp, command, upstream.
 */
import { hash } from 'node:crypto';
import { countAt } from '../command/keys.js';
import type { CommandTable } from '../command/table.js';
import { argumentsOf, wordOf } from '../resp/decode.js';
import { Functions } from './functions.js';
import { Routine, UNKNOWN_NAMES, type NamedKey } from './routine.js';
import type { Server } from '../upstream/server.js';

export class Script extends Routine {
  /** Whether a server has accepted the script from a client since the last SCRIPT FLUSH: run by its text, or loaded. */
  accepted = false;
  #title: string | undefined;

  constructor(
    readonly body: Buffer,
    readonly sha: string,
  ) {
    super(body.length > MAX_TEXT ? null : body.toString('latin1'), false);
  }

  /** A title for people: the start of the digest, and the first words of the text that are no comment. */
  get title(): string {
    return (this.#title ??= titleOf(this));
  }

  /** Whether the script begins with `#!lua flags=…`, which older servers do not compile; possible since Redis 7. */
  get hasShebang(): boolean {
    return this.body[0] === HASH;
  }

  override repeatable(commands: ReadonlySet<string>): boolean {
    return super.repeatable(commands) && (!this.hasShebang || commands.has('fcall'));
  }
}

const HASH = '#'.charCodeAt(0);
/** Maximum length of a title, and of a digest in it. */
const MAX_TITLE = 40;
const SHORT_SHA = 8;
const printable = (text: string): string => text.replace(/[^ -~]/g, '?');
/** A longer text is neither read nor kept: it may do anything. */
const MAX_TEXT = 1 << 20;

/** Scripts of many packages begin with comments: this many characters of a text are searched for its title. */
const TITLE_FROM = 4_096;

function titleOf({ body, sha }: Script): string {
  const text = body
    .toString('latin1', 0, TITLE_FROM)
    .replace(/--\[\[[^]*?\]\]|^#!.*|--.*/gm, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  const words = printable(text);
  return `script ${sha.slice(0, SHORT_SHA)} (${words.length > MAX_TITLE ? `${words.slice(0, MAX_TITLE)}…` : words})`;
}

/** The keys of one call of a script or function that it does not declare; null if its text does not show them. */
export interface Undeclared {
  readonly reads: readonly Buffer[] | null;
  readonly writes: readonly Buffer[] | null;
}

/**
 * About how much memory a script takes: its text twice (as bytes, and as the result of reading it), and the objects
 * around it.
 */
const bytesOf = ({ body }: Script): number => 2 * body.length + 2_048;

/** Scripts by digest, up to a number of bytes. Beyond it, the least recently used ones are removed. */
class Shelf {
  readonly #bySha = new Map<string, Script>();
  #bytes = 0;

  /** @param forgotten called with each digest that is removed */
  constructor(
    private readonly maxBytes: number,
    private readonly forgotten: (sha: string) => void = () => undefined,
  ) {}

  get bytes(): number {
    return this.#bytes;
  }

  get(sha: string): Script | undefined {
    return this.#bySha.get(sha);
  }

  /** Adds a script, or records that it was used. */
  keep(script: Script): void {
    this.take(script.sha);
    this.#bySha.set(script.sha, script);
    this.#bytes += bytesOf(script);
    for (const oldest of this.#bySha.keys()) {
      if (this.#bytes <= this.maxBytes) break;
      this.take(oldest);
      this.forgotten(oldest);
    }
  }

  take(sha: string): void {
    const script = this.#bySha.get(sha);
    if (script === undefined) return;
    this.#bySha.delete(sha);
    this.#bytes -= bytesOf(script);
  }

  all(): IterableIterator<Script> {
    return this.#bySha.values();
  }
}

/** Maximum bytes of scripts that a server has accepted, and of those that were only sent. */
const MAX_ACCEPTED = 64 << 20;
const MAX_SENT = 4 << 20;

export class Scripts {
  /** Scripts that a server has run or loaded for a client. */
  readonly #accepted: Shelf;
  /**
   * Scripts that clients have sent, and no server has accepted: the user may lack the right. They are read again when
   * they are sent again.
   */
  readonly #sent: Shelf;
  /** The script that was looked up last: a command looks it up several times. */
  #latest: Script | null = null;
  readonly functions = new Functions();
  /** The scripts that each server is known to have, and the run ID for which that holds. */
  readonly #loaded = new Map<Server, { runId: string; shas: Set<string> }>();

  constructor(maxAccepted = MAX_ACCEPTED, maxSent = MAX_SENT) {
    this.#accepted = new Shelf(maxAccepted, (sha) => {
      for (const { shas } of this.#loaded.values()) shas.delete(sha);
    });
    this.#sent = new Shelf(maxSent);
  }

  /** About how many bytes the scripts take. */
  get bytes(): number {
    return this.#accepted.bytes + this.#sent.bytes;
  }

  /** Reads the text of a script that is about to be sent to a server. */
  learn(body: Buffer): void {
    this.#read(body);
  }

  #read(body: Buffer): Script {
    if (this.#latest?.body.equals(body) === true) return this.#latest;
    if (body.length > MAX_TEXT) return new Script(body, '');
    const sha = hash('sha1', body);
    let script = this.#withDigest(sha);
    if (script === undefined) this.#sent.keep((script = new Script(Buffer.from(body), sha)));
    return (this.#latest = script);
  }

  #withDigest(sha: string): Script | undefined {
    return this.#accepted.get(sha) ?? this.#sent.get(sha);
  }

  /** Whether the script or function that `frame` runs may publish. */
  mayPublish(frame: Buffer): boolean {
    return this.find(argumentsOf(frame))?.mayPublish ?? true;
  }

  /**
   * Whether the script or function that `frame` runs may swap databases: then it concerns all keys, whatever it
   * declares.
   */
  swapDatabases(frame: Buffer): boolean {
    return this.find(argumentsOf(frame))?.swapsDatabases === true;
  }

  /**
   * The script or function that an EVAL, EVALSHA or FCALL runs; undefined for a digest whose text was never seen, and
   * for an unknown function.
   */
  find(args: readonly Buffer[]): Routine | undefined {
    if (args.length < 3) return undefined;
    const name = wordOf(args[0]).toLowerCase();
    if (name.startsWith('fcall')) return this.functions.find(args[1].toString('latin1'));
    return name.startsWith('evalsha') ? this.#withDigest(wordOf(args[1]).toLowerCase()) : this.#read(args[1]);
  }

  /**
   * The name of what an EVAL, EVALSHA or FCALL runs, for people: `function NAME`, or the digest with the text's first
   * words.
   */
  titleOf(args: readonly Buffer[]): string {
    const name = wordOf(args[0]).toLowerCase();
    if (args.length < 2) return name;
    if (name.startsWith('fcall')) return `function ${printable(args[1].toString('latin1', 0, MAX_TITLE))}`;
    const script = this.find(args);
    if (script instanceof Script) return script.title;
    return name.startsWith('evalsha') ? `script ${printable(wordOf(args[1]).slice(0, SHORT_SHA))}` : 'a script';
  }

  /** The undeclared keys of the call; for a digest whose text was never seen, nothing is known. */
  undeclared(args: readonly Buffer[], table: CommandTable): Undeclared {
    const count = args.length < 3 ? -1 : countAt(args[2], 0, args[2].length);
    // The server will refuse it.
    if (count < 0 || count > args.length - 3) return { reads: [], writes: [] };
    const routine = this.find(args);
    const { reads, writes } = routine?.named(table) ?? UNKNOWN_NAMES;
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

  /** Called when a server has run the script of this EVAL or EVALSHA, or loaded that of this SCRIPT LOAD. */
  accepted(args: readonly Buffer[]): void {
    const loads = wordOf(args[0]).toLowerCase() === 'script';
    const script = loads ? this.#read(args[2]) : this.find(args);
    if (!(script instanceof Script) || script.sha === '') return;
    script.accepted = true;
    this.#sent.take(script.sha);
    this.#accepted.keep(script);
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

  /** Loads the script on the server. If the server refuses it, it will refuse it again when the script is to run. */
  async load(server: Server, script: Script): Promise<void> {
    await server.ask('SCRIPT', 'LOAD', script.body).catch(() => null);
    this.loadedOn(server, script);
  }

  /** Called when the server has answered that it does not know the script of this EVALSHA. */
  unknownTo(server: Server, args: readonly Buffer[]): void {
    const script = this.find(args);
    if (script instanceof Script) this.#loaded.get(server)?.shas.delete(script.sha);
  }

  /** Called when it is no longer certain which scripts the server has. */
  forget(server: Server): void {
    this.#loaded.delete(server);
  }

  /**
   * Called after SCRIPT FLUSH: no script is loaded again. The texts are kept, because scripts that ran before may still
   * be in flight to the mirror, and their effects are read from their texts.
   */
  flushed(): void {
    for (const script of this.#accepted.all()) script.accepted = false;
    this.#loaded.clear();
  }
}
