/** Whether the mirrors have memory for all copies: checked before a job begins, and while it runs. */
import { clearTimer, every, type Timer } from '../../io/timers.js';
import { parseInfo, type Server } from '../../upstream/server.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import { isError, text } from '../../resp/decode.js';
import { otherSide, type Side } from '../../route/stage.js';

const LOOK_MS = 1_000;
/** How full a mirror may become: its clients need memory, too. */
const FULL = 0.98;

/** A mirror lacks the memory; the message has the figures. */
export class RoomError extends Error {
  readonly code = 'MEMORY';
}

interface Memory {
  readonly used: number;
  /** Infinity if there is no limit. */
  readonly max: number;
  /** How many bytes the keys take. */
  readonly data: number;
  readonly evicted: number;
}

export class MemoryGuard {
  #timer: Timer | undefined;
  readonly #evicted = new Map<Side, number>();

  /** @param full called where a mirror is full, or begins to evict */
  constructor(
    private readonly sequencer: Sequencer,
    private readonly authorities: readonly Side[],
    private readonly full: (why: string) => void,
  ) {}

  /**
   * What the authority holds has to fit beside what the mirror has that is not the same.
   * @throws {RoomError}
   */
  async check(): Promise<void> {
    const { servers } = this.sequencer;
    for (const side of this.authorities) {
      const mirror = servers[otherSide(side)];
      const [there, here] = [await memoryOf(mirror), await memoryOf(servers[side])];
      // `watch` looks again.
      if (there === null || here === null) continue;
      this.#evicted.set(mirror.side, there.evicted);
      const needed = there.used - there.data + Math.max(there.data, here.data);
      if (needed <= there.max * FULL) continue;
      throw new RoomError(
        `the ${mirror.side} would need about ${mebibytes(needed)}, and its maxmemory is ${mebibytes(there.max)}: raise it (CONFIG SET maxmemory), or copy fewer workloads`,
      );
    }
  }

  /** Checks the mirrors repeatedly from now on. */
  watch(): void {
    this.#timer = every(LOOK_MS, () => {
      for (const side of this.authorities)
        void this.#readMemory(this.sequencer.servers[otherSide(side)]).catch(() => undefined);
    }).unref();
  }

  async #readMemory(mirror: Server): Promise<void> {
    const memory = await memoryOf(mirror);
    if (memory === null) return;
    const { used, max, evicted } = memory;
    const before = this.#evicted.get(mirror.side);
    this.#evicted.set(mirror.side, evicted);
    if (used > max * FULL)
      this.full(
        `the ${mirror.side} is full: ${mebibytes(used)} of maxmemory ${mebibytes(max)} are used; raise it, and start again: copied keys are kept`,
      );
    else if (before !== undefined && evicted > before)
      this.full(`the ${mirror.side} evicts keys (maxmemory ${mebibytes(max)}): raise it, and start again`);
  }

  close(): void {
    clearTimer(this.#timer);
  }
}

/** Null if the server refuses to tell, as one does that runs a long script. */
async function memoryOf(server: Server): Promise<Memory | null> {
  const replies = [await server.ask('INFO', 'memory'), await server.ask('INFO', 'stats')];
  if (replies.some(isError)) return null;
  const info = parseInfo(replies.map(text).join(''));
  const field = (name: string): number => Number(info.get(name) ?? 0);
  const used = field('used_memory');
  return {
    used,
    max: field('maxmemory') || Infinity,
    data: field('used_memory_dataset') || used,
    evicted: field('evicted_keys'),
  };
}

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
