/** A client whose user may use few keys: it may do no more and no less, whatever its user is at the servers. */
import { WORLD } from '../world/events.js';
import type { Network } from '../world/network.js';
import type { Random } from '../world/random.js';
import { ReplyReader, type Reply } from './replies.js';

export const GUEST = { name: 'guest', password: 'secret' } as const;
export const GUEST_RULES = ['on', `>${GUEST.password}`, '~guest', '&*', '+@all'];
const ASK_MS = [5, 60] as const;
/** What it sends each time: a key that it may not use, and one that it may. */
const COMMANDS = ['GET nothing', 'GET guest'];

export class Guest {
  constructor(
    private readonly network: Network,
    private readonly address: { readonly host: string; readonly port: number },
    private readonly random: Random,
    private readonly wrong: (problem: string) => void,
  ) {}

  start(): void {
    const { network, random } = this;
    const reader = new ReplyReader();
    const { host, port } = this.address;
    let replies: Reply[] = [];
    const ask = (): void => {
      replies = [];
      if (!end.isClosed) end.send(Buffer.from(`${COMMANDS.join('\r\n')}\r\n`));
    };
    const end = network.connect(WORLD, '10.0.1.9', { host, port }, () => {
      end.send(Buffer.from(`AUTH ${GUEST.name} ${GUEST.password}\r\n`));
    });
    end.received = (bytes) => {
      reader.feed(bytes);
      for (let reply = reader.next(); reply !== undefined; reply = reader.next()) replies.push(reply);
      if (replies.length === 1 && replies[0] === '+OK') ask();
      else if (replies.length === COMMANDS.length) {
        this.#judge(replies);
        network.events.after(random.between(...ASK_MS), WORLD, ask);
      }
    };
    end.ended = end.closed = () => {
      end.close();
      network.events.after(random.between(1, 50), WORLD, () => this.start());
    };
  }

  #judge([denied, allowed]: readonly Reply[]): void {
    const isDenied = (reply: Reply): boolean => typeof reply === 'string' && reply.startsWith('-NOPERM');
    if (denied === null || Array.isArray(denied))
      this.wrong(`a user got ${JSON.stringify(denied)} for a key that it may not use`);
    if (isDenied(allowed)) this.wrong(`a user was refused a key that it may use: ${String(allowed)}`);
  }
}
