/** A Sentinel: it says where a master is, as far as it knows. */
import { RequestParser } from '../../../shadow-proxy/src/resp/request.js';
import { bulks, error, nilArray } from '../server/reply.js';
import { argumentsIn } from '../server/server.js';
import type { Address, End } from './network.js';
import type { SimulatedWorld } from './world.js';

const PORT = 26_379;

export class Sentinel {
  /** By the name of the master. */
  readonly masters = new Map<string, Address>();

  constructor(
    world: SimulatedWorld,
    readonly host: string,
  ) {
    const owner = world.newProcess('sentinel', world.newHost(host));
    world.network.listen({ host, port: PORT, owner, accept: (end) => this.#accept(end) });
  }

  /** `host:port`, as in the URL of an endpoint. */
  get label(): string {
    return `${this.host}:${PORT}`;
  }

  #accept(end: End): void {
    const parser = new RequestParser();
    end.received = (bytes) => {
      for (parser.feed(bytes); parser.next();) end.send(Buffer.from(this.#answer(argumentsIn(parser))));
    };
    end.ended = end.closed = () => end.close();
  }

  #answer([command, subcommand = '', name = '']: readonly string[]): string {
    if (`${command} ${subcommand}`.toUpperCase() !== 'SENTINEL GET-MASTER-ADDR-BY-NAME')
      return error(`ERR unknown command '${command}'`);
    const master = this.masters.get(name);
    return master === undefined ? nilArray(2) : bulks([master.host, String(master.port)]);
  }
}
