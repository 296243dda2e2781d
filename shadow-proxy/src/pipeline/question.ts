/** A question to both servers at one place in the order: to the authority, and at its reply's place to the mirror. */
import { monotonicMs } from '../io/clock.js';
import { sleep } from '../io/timers.js';
import { decodeReply } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';
import { lifeFromReply, type KeyLife } from '../resp/key-life.js';
import { ACCEPT, NOTHING, Operation, type Carrier } from './operation.js';
import type { Sequencer } from './sequencer.js';

const DENIED = '-NOPERM';
/** How often it is looked whether a command still runs alone, in ms. */
const PASSING_MS = 1;

/** A key's life on both servers; null where a server refused. */
export interface BothLives {
  readonly authority: KeyLife | null;
  readonly mirror: KeyLife | null;
  /** Both were answered between these two, in ms of the monotonic clock. */
  readonly from: number;
  readonly to: number;
}

/**
 * Asks for a key's life on a lane of an operation's authority, and on its mirror.
 * @param answered is called at the place of the mirror's reply, with null where a connection is lost first
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
 * Likewise, once no other lane has a write to the key in flight: what the authority says would be sent to the mirror
 * before a write that it has run already. Nor while a command runs alone, which writes what it does not tell.
 * @throws {Error} when a connection is lost first
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
