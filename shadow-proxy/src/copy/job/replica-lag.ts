/** Whether replicas of a job's mirrors keep up with what it copies. */
import { clearTimer, every, type Timer } from '../../io/timers.js';
import { isError, text } from '../../resp/decode.js';
import type { Side } from '../../route/stage.js';
import { bytes } from '../../text/figures.js';
import { parseInfo, type Server } from '../../upstream/server.js';

const LOOK_MS = 500;

type MirrorServer = Pick<Server, 'side' | 'ask'>;

export class ReplicaLag {
  readonly #timer: Timer;
  readonly #problems = new Map<Side, string>();

  /** @param limit bytes that a replica may lack; null: any number, and no server is asked */
  constructor(
    private readonly mirrors: () => readonly MirrorServer[],
    private readonly limit: () => number | null,
  ) {
    this.#timer = every(LOOK_MS, () => this.#look()).unref();
  }

  /** Why the job has to wait; null where it may go on. */
  get problem(): string | null {
    return this.limit() === null ? null : ([...this.#problems.values()][0] ?? null);
  }

  close(): void {
    clearTimer(this.#timer);
  }

  #look(): void {
    const most = this.limit();
    if (most === null) return this.#problems.clear();
    for (const mirror of this.mirrors()) {
      mirror.ask('INFO', 'replication').then(
        (reply) => {
          if (isError(reply)) return;
          const problem = lagProblem(text(reply), most);
          if (problem === null) this.#problems.delete(mirror.side);
          else this.#problems.set(mirror.side, `a replica of the ${mirror.side} is behind: ${problem}`);
        },
        // A mirror that does not answer stops the copies by itself.
        () => undefined,
      );
    }
  }
}

/**
 * Why a server's replicas are too far behind; null where none is.
 * @param info its section `replication`
 * @param most bytes
 */
export function lagProblem(info: string, most: number): string | null {
  const fields = parseInfo(info);
  const written = Number(fields.get('master_repl_offset') ?? 0);
  for (const [name, value] of fields) {
    if (!/^slave\d+$/.test(name)) continue;
    const replica = new Map(value.split(',').map((part) => part.split('=', 2) as [string, string]));
    const address = `${replica.get('ip')}:${replica.get('port')}`;
    if (replica.get('state') !== 'online') return `${address} is in state ${replica.get('state')}`;
    const lag = written - Number(replica.get('offset') ?? 0);
    if (lag > most) return `${address} by ${bytes(lag)}, at most ${bytes(most)}`;
  }
  return null;
}
