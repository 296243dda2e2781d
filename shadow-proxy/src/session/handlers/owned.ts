/**
 * DBSIZE and RANDOMKEY on a server that several shards share, and CLUSTER COUNTKEYSINSLOT and GETKEYSINSLOT on a server
 * without a cluster: a client sees its own shard's keys. The server does not know which keys those are, so the proxy
 * scans its keys, on a connection of its own. DBSIZE costs as much as a SCAN of the whole database, and counts a key
 * twice that SCAN returns twice.
 */
import { randomShare } from '../../io/random.js';
import type { Connection } from '../../upstream/connection.js';
import { FIRST_PAGE, scanPage } from '../../upstream/scan-page.js';
import { HandshakeRefused, type Server } from '../../upstream/server.js';
import type { CommandSpec } from '../../command/table.js';
import { closeFor } from '../../pipeline/failures.js';
import { isError, text, type Reply } from '../../resp/decode.js';
import { array, bulk, error, integer } from '../../resp/encode.js';
import type { Matcher } from '../../route/glob.js';
import { hashSlot } from '../../route/slot.js';
import type { Side } from '../../route/stage.js';
import type { CommandContext } from '../context.js';

/** Keys that one SCAN returns: well under a millisecond of the server's time. */
const PAGE_KEYS = 1000;
/** How many random keys are tried before a scan looks for one. */
const TRIES = 32;

type Answer = (context: CommandContext, borrowed: BorrowedConnection, owned: Matcher) => Promise<Buffer>;

/** A server, and the connection to it that belongs to this command. */
interface BorrowedConnection {
  readonly server: Server;
  readonly connection: Connection;
}

const ANSWERS: Readonly<Record<string, Answer>> = {
  async dbsize(context, borrowed, owned) {
    const { face } = context.clients;
    if (face !== null && borrowed.server.identity?.mode === 'cluster') {
      const slots = face.own.slots.flatMap(([first, last]) =>
        Array.from({ length: last - first + 1 }, (_, i) => ['CLUSTER', 'COUNTKEYSINSLOT', first + i]),
      );
      const counts = await borrowed.connection.askAll(slots);
      return integer(counts.reduce((sum, each) => sum + Number(text(each)), 0));
    }
    let count = 0;
    for await (const keys of pages(context, borrowed, owned)) count += keys.length;
    return integer(count);
  },
  async randomkey(context, borrowed, owned) {
    const tried = await borrowed.connection.askAll(Array.from({ length: TRIES }, () => ['RANDOMKEY']));
    const mine = ownedOf(tried, owned);
    if (mine.length > 0) return bulk(mine[0]);
    for await (const keys of pages(context, borrowed, owned))
      if (keys.length > 0) return bulk(keys[Math.floor(randomShare() * keys.length)]);
    return bulk(null, context.client.protocol);
  },
};

/** Answers the command at hand, if it is one of these. @returns whether it did */
export function answerOwned(context: CommandContext, spec: CommandSpec, side: Side, owned: Matcher): boolean {
  const { name } = spec;
  const answer = ANSWERS[name] as Answer | undefined;
  if (answer === undefined || context.parser.argc > 1) return false;
  context.clients.counts.sent(spec, context.sequencer.router.default);
  begin(context, side, name, (borrowed) => answer(context, borrowed, owned));
  return true;
}

/** Answers with the number of the slot's keys on the default authority, or with up to `limit` of them. */
export function answerSlot(context: CommandContext, slot: number, limit: number | null): void {
  const inSlot: Matcher = (key, start, end) => hashSlot(key, start, end) === slot;
  begin(context, context.clients.side, 'DBSIZE', async (borrowed) => {
    const found: Buffer[] = [];
    for await (const keys of pages(context, borrowed, inSlot)) {
      found.push(...keys);
      if (limit !== null && found.length >= limit) break;
    }
    return limit === null ? integer(found.length) : array(found.slice(0, limit).map((key) => bulk(key)));
  });
}

function begin(
  context: CommandContext,
  side: Side,
  name: string,
  answer: (borrowed: BorrowedConnection) => Promise<Buffer>,
): void {
  context.flow.whenIdle(() => {
    ask(context, side, name, answer)
      .then((reply) => {
        context.reply(reply);
        context.flow.resume();
      })
      .catch((problem: unknown) => closeFor(problem, context));
  });
}

/** The server decides whether the client's user may run the command at all. */
async function ask(
  context: CommandContext,
  side: Side,
  name: string,
  answer: (borrowed: BorrowedConnection) => Promise<Buffer>,
): Promise<Buffer> {
  const server = context.sequencer.servers[side];
  try {
    const reply = await server.askAs(context.client.credentials, name);
    if (isError(reply)) return error(text(reply));
  } catch (problem) {
    if (problem instanceof HandshakeRefused) return error(problem.reply);
    throw problem;
  }
  const connection = await server.open({
    db: context.client.db,
    protocol: 2,
    credentials: server.endpoint.credentials,
  });
  try {
    return await answer({ server, connection });
  } finally {
    connection.destroy();
  }
}

/** Scans the shard's keys on a server, page by page, as the kit's own user. */
export async function* openPages(
  context: CommandContext,
  server: Server,
  owned: Matcher,
): AsyncGenerator<Buffer[], void, undefined> {
  const { credentials } = server.endpoint;
  const connection = await server.open({ db: context.client.db, protocol: 2, credentials });
  try {
    yield* pages(context, { server, connection }, owned);
  } finally {
    connection.destroy();
  }
}

async function* pages(
  context: CommandContext,
  { server, connection }: BorrowedConnection,
  owned: Matcher,
): AsyncGenerator<Buffer[], void, undefined> {
  let cursor = FIRST_PAGE;
  do {
    const page = await scanPage(server, connection, cursor, PAGE_KEYS);
    ({ cursor } = page);
    yield page.keys.filter((key) => owned(key, 0, key.length));
  } while (cursor !== FIRST_PAGE && !context.client.closed);
}

const ownedOf = (keys: readonly Reply[], owned: Matcher): Buffer[] =>
  keys.flatMap(({ data }) => (data && owned(data, 0, data.length) ? [data] : []));
