/** SUBSCRIBE, PSUBSCRIBE, PUBLISH. */
import { matches } from './glob.js';
import { arrayOf, bulk, bulkOrNil, bulks, integer, pushOf, type Protocol } from './reply.js';
import type { Client, Run, State } from './state.js';
import { container } from './subcommand.js';

const notice = (kind: string, name: string | undefined, client: Client): string =>
  pushOf(3, client.protocol) + bulk(kind) + bulkOrNil(name, client.protocol) + integer(client.subscribed);

const subscribe =
  (kind: string, setOf: (client: Client) => Set<string>): Run =>
  (client, args) => {
    let reply = '';
    for (const name of args.slice(1)) {
      setOf(client).add(name);
      reply += notice(kind, name, client);
    }
    return reply;
  };

const unsubscribe =
  (kind: string, setOf: (client: Client) => Set<string>): Run =>
  (client, args) => {
    const names = args.length > 1 ? args.slice(1) : [...setOf(client)];
    if (names.length === 0) return notice(kind, undefined, client);
    let reply = '';
    for (const name of names) {
      setOf(client).delete(name);
      reply += notice(kind, name, client);
    }
    return reply;
  };

const channels = (client: Client): Set<string> => client.channels;
const patterns = (client: Client): Set<string> => client.patterns;

const message = (words: readonly string[], protocol: Protocol): string =>
  pushOf(words.length, protocol) + words.map(bulk).join('');

/** Sends a message to all clients that listen; returns how many times. */
function publish(server: State, channel: string, text: string): number {
  let count = 0;
  const send = (client: Client, words: readonly string[]): void => {
    client.pushLater(message(words, client.protocol));
    count++;
  };
  for (const client of server.clients.values())
    if (client.channels.has(channel)) send(client, ['message', channel, text]);
  for (const client of server.clients.values())
    for (const pattern of client.patterns)
      if (matches(pattern, channel)) send(client, ['pmessage', pattern, channel, text]);
  return count;
}

export const PUB_SUB_COMMANDS: Readonly<Record<string, Run>> = {
  subscribe: subscribe('subscribe', channels),
  psubscribe: subscribe('psubscribe', patterns),
  unsubscribe: unsubscribe('unsubscribe', channels),
  punsubscribe: unsubscribe('punsubscribe', patterns),
  publish: ({ server }, [, channel, text]) => integer(publish(server, channel, text)),
  pubsub: container({
    channels({ server }, args) {
      const names = new Set([...server.clients.values()].flatMap((client) => [...client.channels]));
      return bulks([...names].filter((name) => matches(args[2] ?? '*', name)));
    },
    numsub({ server }, args) {
      const names = args.slice(2);
      const clients = [...server.clients.values()];
      const count = (name: string): number => clients.filter((client) => client.channels.has(name)).length;
      return arrayOf(names.length * 2) + names.map((name) => bulk(name) + integer(count(name))).join('');
    },
    numpat: ({ server }) =>
      integer(new Set([...server.clients.values()].flatMap((client) => [...client.patterns])).size),
  }),
};
