/**
 * A question to both servers at one place in the order: to the authority, and to the mirror at the place of the
 * authority's reply.
 */
import { monotonicMs } from '../io/clock.js';
import { sleep } from '../io/timers.js';
import { decodeReply } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';
import { lifeFromReply, type KeyLife } from '../resp/key-life.js';
import { ACCEPT, NOTHING, Operation, type Carrier } from './operation.js';
import type { Sequencer } from './sequencer.js';

const DENIED = '-NOPERM';
/** How often, in ms, to check whether an exclusive command still runs. */
const PASSING_MS = 1;

/** A key's remaining life on both servers; null if a server refused to say. */
export interface BothLives {
  readonly authority: KeyLife | null;
  readonly mirror: KeyLife | null;
  /** The interval in which both servers answered, in ms of the monotonic clock. */
  readonly from: number;
  readonly to: number;
}

/**
 * Asks for a key's remaining life at an operation's authority, on its lane, and at the mirror.
 * @param answered is called at the place of the mirror's reply, with null if a connection is lost first
 * @param placed is called at the place of the question in the mirror's order
 * @param holds whether other lanes' writes to the key wait meanwhile
 */
export function askLife(
  sequencer: Sequencer,
  lane: Carrier,
  about: Pick<Operation, 'workload' | 'db' | 'protocol'>,
  key: Buffer,
  answered: (both: BothLives | null) => void,
  placed = (): void => undefined,
  holds = false,
): void {
  const frame = encodeCommand(['PTTL', key]);
  const lost = (): void => answered(null);
  const operation = (sink: Operation['sink']): Operation =>
    new Operation(frame, 0, frame.length, sink, undefined, about.workload, about.db, about.protocol, NOTHING);
  if (lane.closed) return lost();
  const question = operation({
    lost,
    answered: (asked, buffer, start) => {
      const authority = lifeIn(buffer, start);
      if (authority === null && buffer.toString('latin1', start, start + DENIED.length) === DENIED)
        lane.mayAskLife = false;
      const echo = operation(null);
      echo.lane = lane;
      echo.answeredAt = asked.answeredAt;
      echo.reply = buffer;
      echo.check = ACCEPT;
      echo.confirmed = (answer) =>
        answered(answer && { authority, mirror: lifeIn(answer, 0), from: asked.submittedAt, to: monotonicMs() });
      placed();
      sequencer.mirrorOf(echo).append(echo);
    },
  });
  sequencer.submit(question, lane);
  if (holds) sequencer.hold(question, lane, [key.toString('latin1')]);
}

/**
 * Asks both servers for a key's remaining life, once no other lane has a write to the key in flight: else the question
 * could reach the mirror before a write that the authority has run already. It also waits for an exclusive command,
 * which may write keys that it does not name.
 * @throws {Error} if a connection is lost first
 */
export async function lifeOnBoth(
  sequencer: Sequencer,
  about: Operation,
  key: Buffer,
  placed: () => void,
): Promise<BothLives> {
  const lane = about.lane!.home;
  const locks = sequencer.lanes[lane.server.side].locks(about.db);
  const ask = (): Promise<BothLives> =>
    new Promise((resolve, reject) => {
      askLife(
        sequencer,
        lane,
        about,
        key,
        (both) => (both === null ? reject(new Error('the connection was lost')) : resolve(both)),
        placed,
        true,
      );
    });
  for (;;) {
    const both = await locks.withLock(lane, [key.toString('latin1')], false, () =>
      sequencer.blocked ? sleep(PASSING_MS, null) : ask(),
    );
    if (both !== null) return both;
  }
}

const lifeIn = (buffer: Buffer, start: number): KeyLife | null => lifeFromReply(decodeReply(buffer, start).reply);
