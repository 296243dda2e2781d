/**
 * Finds keys that are used as counters, whatever the plan says of their workload. It samples the first commands of each
 * kind in each second, and scales the result to the second's commands. A command that is not sampled costs one
 * increment.
 */
import { KINDS, type CountingKind } from '../command/counting-kind.js';
import { KeyList, keysOf, isWord } from '../command/keys.js';
import type { CommandSpec } from '../command/table.js';
import { monotonicMs } from '../io/clock.js';
import { clearTimer, every, type Timer } from '../io/timers.js';
import { Prefixes, prefixOf } from '../telemetry/prefixes.js';
import type { CountingSnapshot } from '../telemetry/snapshot.js';
import { argumentsOf } from '../resp/decode.js';
import type { RequestParser } from '../resp/request.js';
import type { Sequencer } from '../pipeline/sequencer.js';

/** A client, with its command at hand. */
export interface Counting {
  readonly client: { readonly id: number };
  readonly clients: { readonly sequencer: Sequencer };
  readonly parser: RequestParser;
  readonly command: Buffer;
}

const SECOND_MS = 1_000;
/** The most commands of one kind that are sampled in a second. */
const SAMPLES = 100;
/**
 * The most GETs and SETs that are sampled in a second, together: enough to see one client's GET and SET of the same
 * key.
 */
const PAIR_SAMPLES = 500;
/** How many GETs are remembered until the end of the second. */
const SLOTS = 1_024;
/** The longest text of a number, in bytes. */
const MAX_DIGITS = 20;

const REWRITE = KINDS.indexOf('rewrite');

export class CounterWatch {
  readonly #prefixes = new Prefixes(monotonicMs());
  readonly #offered = new Float64Array(KINDS.length + 1);
  readonly #left = new Int32Array(KINDS.length + 1);
  /** How many commands a sampled one stands for, by kind, as measured in the second before. */
  readonly #scale = new Float64Array(KINDS.length + 1).fill(1);
  /** The GETs of this second: at the key's hash, the client's number and the hash. */
  readonly #readers = new Float64Array(SLOTS);
  readonly #hashes = new Int32Array(SLOTS);
  readonly #keys = new KeyList();
  readonly #timer: Timer;

  constructor() {
    this.#beginSecond();
    this.#timer = every(SECOND_MS, () => this.#beginSecond()).unref();
  }

  /** Samples the command at hand, which the command table marks as one to watch. */
  offer(session: Counting, spec: CommandSpec): void {
    const kind = spec.watched;
    this.#offered[kind]++;
    if (this.#left[kind] <= 0) return;
    this.#left[kind]--;
    if (kind === READ) this.#noteRead(session);
    else if (kind === REWRITE) this.#sampleSet(session, spec);
    else if (spec.handling === 'script') this.#sampleScript(session, spec);
    else this.#note(session, spec, KINDS[kind], spec.name);
  }

  snapshot(): CountingSnapshot[] {
    return this.#prefixes.snapshot(monotonicMs());
  }

  close(): void {
    clearTimer(this.#timer);
  }

  #beginSecond(): void {
    for (let kind = 0; kind <= READ; kind++) {
      const samples = kind === READ || kind === REWRITE ? PAIR_SAMPLES : SAMPLES;
      this.#scale[kind] = Math.max(1, this.#offered[kind] / samples);
      this.#offered[kind] = 0;
      this.#left[kind] = samples;
    }
    this.#readers.fill(0);
    this.#prefixes.rotate(monotonicMs());
  }

  #note(session: Counting, spec: CommandSpec, kind: CountingKind, name: string): void {
    const { parser, clients } = session;
    const { frame, argStart, argEnd, argc } = parser;
    if (keysOf(spec, frame, argStart, argEnd, argc, this.#keys) <= 0) return;
    const at = this.#keys.index[0];
    const workload = clients.sequencer.router.match(frame, argStart[at], argEnd[at]);
    const prefix = prefixOf(frame.toString('latin1', argStart[at], Math.min(argEnd[at], argStart[at] + 256)));
    this.#prefixes.add({ workload: workload.name, kind, prefix }, name, this.#scale[spec.watched]);
  }

  #noteRead({ parser: { frame, argStart, argEnd, argc }, client: { id } }: Counting): void {
    if (argc < 2) return;
    const hash = hashOf(frame, argStart[1], argEnd[1]);
    this.#readers[hash & (SLOTS - 1)] = id;
    this.#hashes[hash & (SLOTS - 1)] = hash;
  }

  /** SET NX takes a lock. SET of a number that the same client has just read counts. */
  #sampleSet(session: Counting, spec: CommandSpec): void {
    const { frame, argStart, argEnd, argc } = session.parser;
    for (let at = 3; at < argc; at++)
      if (isWord(frame, argStart[at], argEnd[at], 'nx')) return this.#note(session, spec, 'lock', 'set nx');
    if (argc < 3 || argEnd[2] - argStart[2] > MAX_DIGITS) return;
    const hash = hashOf(frame, argStart[1], argEnd[1]);
    const slot = hash & (SLOTS - 1);
    if (this.#readers[slot] !== session.client.id || this.#hashes[slot] !== hash) return;
    if (/^-?\d+(\.\d+)?$/.test(frame.toString('latin1', argStart[2], argEnd[2])))
      this.#note(session, spec, 'rewrite', 'get, set');
  }

  /** A script that reads and writes a key counts. A digest whose text never came through the proxy is unknown. */
  #sampleScript(session: Counting, spec: CommandSpec): void {
    const { scripts, table } = session.clients.sequencer;
    const routine = scripts.find(argumentsOf(session.command));
    if (routine === undefined || routine.readsAndWrites(table))
      this.#note(session, spec, 'script', routine === undefined ? `${spec.name} (text unknown)` : spec.name);
  }
}

/** The entry behind the kinds: GET, which is only remembered. */
const READ = KINDS.length;

/** The FNV-1a hash. */
function hashOf(frame: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ frame[at], 0x01000193);
  return hash ^ (hash >>> 15);
}
