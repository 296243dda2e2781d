/**
 * Turns plain counters into this region's parts. It copies what the source holds of a workload that moves from `off` to
 * `complete`, while the workload's commands are held.
 */
import { unixMs } from '../io/clock.js';
import { lifeFromReply } from '../resp/key-life.js';
import { begins, withdraw, type PlainCounters } from '../../../counters/src/index.js';
import { Scanner } from '../copy/job/scanner.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import { isError, text, type Reply } from '../resp/decode.js';
import type { Workload } from '../route/router.js';
import { LISTED, StageError } from './stage-change.js';

/** Number of parts that are written at once. */
const AT_ONCE = 500;

interface CarriedCounter {
  readonly name: string;
  readonly value: number;
  /** Unix ms; null if the counter does not expire. */
  readonly endsAt: number | null;
}

export interface CarryContext {
  readonly sequencer: Sequencer;
  counters(): Promise<PlainCounters>;
  /** The key's name as it may be shown. */
  redact(key: Buffer): string;
}

export class Carry {
  #running: Promise<void> = Promise.resolve();
  #stopped = false;
  #counters: PlainCounters | null = null;
  readonly #written: string[] = [];

  constructor(
    private readonly context: CarryContext,
    private readonly workload: Workload,
  ) {}

  /** Prepares what takes time, before commands are held. @throws {StageError} */
  async prepare(): Promise<void> {
    this.#counters = await this.context.counters().catch((problem: Error) => {
      throw new StageError(
        'refused',
        `the target cannot be reached (${problem.message}): start it before counters are carried over to it`,
      );
    });
  }

  /** @throws {StageError} with the counters that cannot be carried over */
  run(): Promise<void> {
    this.#running = this.#run();
    return this.#running;
  }

  /** Removes the parts that were written. */
  async undo(): Promise<void> {
    this.#stopped = true;
    await this.#running.catch(() => undefined);
    await inChunks(this.#written, (name) => this.#counters!.run(name, withdraw));
  }

  async #run(): Promise<void> {
    const found = await this.#read();
    await inChunks(found, async ({ name, value, endsAt }) => {
      if (this.#stopped) return;
      this.#written.push(name);
      await this.#counters!.run(name, begins(value, endsAt));
    });
  }

  async #read(): Promise<CarriedCounter[]> {
    const { sequencer, redact } = this.context;
    const server = sequencer.servers.source;
    const scanner = new Scanner(server, sequencer.swaps);
    const connection = await server.open({ db: 0, protocol: 2, credentials: server.endpoint.credentials });
    const found = new Map<string, CarriedCounter>();
    const others: string[] = [];
    try {
      for await (const { id, keys } of scanner.pages(null)) {
        if (this.#stopped) break;
        // No SWAPDB begins while the workload is held.
        const db = sequencer.swaps.ids.numberOf(id);
        const mine = keys
          .filter(({ key }) => sequencer.router.match(key, 0, key.length) === this.workload)
          .map(({ key }) => key);
        const replies =
          db === 0
            ? await connection.askAll(
                mine.flatMap((key) => [
                  ['GET', key],
                  ['PTTL', key],
                ]),
              )
            : [];
        mine.forEach((key, i) => {
          const carried = db === 0 ? carriedOf(key, replies[2 * i], replies[2 * i + 1]) : null;
          if (carried === null) others.push(`${redact(key)}${db === 0 ? '' : ` (database ${db})`}`);
          else if (carried !== 'gone') found.set(carried.name, carried);
        });
      }
    } finally {
      scanner.close();
      connection.destroy();
    }
    if (others.length === 0) return [...found.values()];
    const list = others.slice(0, LISTED);
    throw new StageError(
      'refused',
      `"${this.workload.name}" stays off: ${others.length} of its keys on the source are not plain counters in database 0 with a value up to ${Number.MAX_SAFE_INTEGER} (${list.slice(0, 3).join(', ')}${others.length > 3 ? ', …' : ''}): delete them, or give them to another workload`,
      { keys: others.length, list },
    );
  }
}

/** Null if the key is no counter. */
function carriedOf(key: Buffer, value: Reply, pttl: Reply): CarriedCounter | 'gone' | null {
  if (isError(value)) return null;
  if (value.data === null) return 'gone';
  const said = text(value);
  const [number, life] = [Number(said), lifeFromReply(pttl)];
  if (String(number) !== said || !Number.isSafeInteger(number) || life === null) return null;
  return life.state === 'absent'
    ? 'gone'
    : { name: key.toString('latin1'), value: number, endsAt: life.state === 'expires' ? unixMs() + life.ms : null };
}

async function inChunks<T>(all: readonly T[], work: (each: T) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < all.length; from += AT_ONCE) await Promise.all(all.slice(from, from + AT_ONCE).map(work));
}
