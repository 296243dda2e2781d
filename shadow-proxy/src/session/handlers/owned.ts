/**
 * DBSIZE and RANDOMKEY on a target that several shards share: a client sees its own shard's keys. The server
 * does not know them, so its keys are scanned, on a connection of its own: DBSIZE costs as much as a SCAN
 * of the whole database, and counts twice what a table that shrinks meanwhile shows twice.
 */
import type { Connection } from '../../upstream/connection.js';
import { FIRST_PAGE, scanPage } from '../../upstream/scan-page.js';
import { HandshakeRefused } from '../../upstream/server.js';
import type { CommandSpec } from '../../command/table.js';
import { isError, text, type Reply } from '../../resp/decode.js';
import { bulk, error, integer } from '../../resp/encode.js';
import type { Matcher } from '../../route/glob.js';
import type { CommandContext } from '../context.js';

/** Keys that the server looks at at a time: well under a millisecond. */
const PAGE_KEYS = 1000;
/** So many keys are tried before a scan looks for one. */
const TRIES = 32;

type Answer = (context: CommandContext, connection: Connection, owned: Matcher) => Promise<Buffer>;

const ANSWERS: Readonly<Record<string, Answer>> = {
  async dbsize(context, connection, owned) {
    let count = 0;
    for await (const keys of pages(context, connection, owned)) count += keys.length;
    return integer(count);
  },
  async randomkey(context, connection, owned) {
    const tried = await connection.askAll(Array.from({ length: TRIES }, () => ['RANDOMKEY']));
    const mine = ownedOf(tried, owned);
    if (mine.length > 0) return bulk(mine[0]);
    for await (const keys of pages(context, connection, owned))
      if (keys.length > 0) return bulk(keys[Math.floor(Math.random() * keys.length)]);
    return bulk(null, context.client.protocol);
  },
};

/** Answers the command at hand, if it is one of these. */
export function answerOwned(context: CommandContext, spec: CommandSpec, owned: Matcher): boolean {
  const { name } = spec;
  const answer = ANSWERS[name] as Answer | undefined;
  if (answer === undefined || context.parser.argc > 1) return false;
  context.clients.counts.sent(spec, context.clients.sequencer.router.default);
  context.flow.whenIdle(() => {
    ask(context, name, answer, owned).then(
      (reply) => {
        context.reply(reply);
        context.flow.resume();
      },
      () => context.destroy(),
    );
  });
  return true;
}

/** Whether the client may ask at all is the server's to say. */
async function ask(context: CommandContext, name: string, answer: Answer, owned: Matcher): Promise<Buffer> {
  const server = context.clients.sequencer.servers.target;
  try {
    const asked = await server.askAs(context.client.credentials, name);
    if (isError(asked)) return error(text(asked));
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
    return await answer(context, connection, owned);
  } finally {
    connection.destroy();
  }
}

async function* pages(
  context: CommandContext,
  connection: Connection,
  owned: Matcher,
): AsyncGenerator<Buffer[], void, undefined> {
  const server = context.clients.sequencer.servers.target;
  let cursor = FIRST_PAGE;
  do {
    const page = await scanPage(server, connection, cursor, PAGE_KEYS);
    ({ cursor } = page);
    yield page.keys.filter((key) => owned(key, 0, key.length));
  } while (cursor !== FIRST_PAGE && !context.client.closed);
}

const ownedOf = (keys: readonly Reply[], owned: Matcher): Buffer[] =>
  keys.flatMap(({ data }) => (data && owned(data, 0, data.length) ? [data] : []));
