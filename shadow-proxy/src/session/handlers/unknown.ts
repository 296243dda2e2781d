/**
 * Commands that the table does not know. If no server knows the command either, the authority refuses it. If a newer
 * server knows it: a read is answered, and the mirror gets nothing; a write runs alone, and the keys that it may have
 * written are copied.
 */
import { titleOf } from '../../command/forms.js';
import type { ListedCommand } from '../../command/listed.js';
import { NOTHING, Operation } from '../../pipeline/operation.js';
import type { Workload } from '../../route/router.js';
import { countUnsupported } from '../../telemetry/workload-counters.js';
import { otherSide, type Side } from '../../route/stage.js';
import type { CommandContext } from '../context.js';
import { alone, mayBegin } from './exclusive.js';
import { plain } from './plain.js';
import { crossing } from './split.js';

/** The longest name of a command, in bytes. */
const MAX_NAME = 64;
const MINUS = '-'.charCodeAt(0);

/**
 * @param isRetry whether the command was dispatched before, and had to wait
 */
export function unknown(context: CommandContext, isRetry: boolean): void {
  const { client } = context;
  const { servers, router, table, counters } = context.sequencer;
  const { authority } = router.default.position.keylessRule;
  const word = (index: number): string =>
    context.argument(index).subarray(0, MAX_NAME).toString('latin1').toLowerCase();
  const name = table.byName(word(0)) === undefined ? word(0) : `${word(0)}|${word(1)}`;
  // A command that no server knows, such as a client's probe for something newer, is refused by both servers alike: no
  // client will miss it.
  const isThere = servers[authority].traits.commands.has(name);
  const other = otherSide(authority);
  if (!isRetry && isThere !== servers[other].traits.commands.has(name) && servers[other].traits.commands.size > 0) {
    countUnsupported(counters.of(router.default), titleOf(name), isThere ? other : authority, !isThere);
  }
  if (client.transaction !== null) {
    // The server's own refusal is passed on. If the server might know the command after all, it is not sent, because it
    // would run.
    if (isThere) return context.refuse(`ERR shadow-proxy: ${shown(name)} inside MULTI is not supported`);
    client.transaction.spoil();
  }
  const listed = servers[authority].traits.supported.listed(name);
  if (listed?.writes === true) write(context, name, listed, authority);
  else plain(context);
}

const shown = (name: string): string => name.replace('|', ' ').toUpperCase();

/** A write of a server that is newer than the table. */
function write(context: CommandContext, name: string, listed: ListedCommand, side: Side): void {
  const { clients, client, parser } = context;
  const { sequencer } = clients;
  const { router, suspects } = sequencer;
  if (listed.blocks)
    return context.refuse(
      `ERR shadow-proxy: ${shown(name)} is newer than this version of the proxy, and may block: update the proxy`,
    );
  if (!mayBegin(context)) return;
  const keys = listed.keys(parser.argc).map((at) => Buffer.from(context.argument(at)));
  const workloads = keys.map((key) => router.match(key, 0, key.length));
  const crossed = workloads.find((workload, i) => authorityOf(workload, keys[i]) !== side);
  if (crossed !== undefined || (keys.length === 0 && !router.oneAuthority)) {
    clients.counts.addRefused();
    return context.refuse(crossing(shown(name), router.default, crossed ?? router.default));
  }
  const suspect = (): void => {
    if (keys.length === 0) suspects.hidden(name);
    else for (const key of keys) suspects.key(client.db, key, 'unknown-command');
  };
  const { frame, start, end } = parser;
  alone(context, side, async (lane) => {
    // Noted before the command is sent, and again after it: the key may have been copied in between.
    suspect();
    const reply = await new Promise<Buffer>((resolve, reject) => {
      const sink: Operation['sink'] = {
        answered: (_operation, buffer, from, to) => resolve(buffer.subarray(from, to)),
        lost: (_operation, reason) => reject(reason),
      };
      const { db, protocol } = client;
      sequencer.submit(
        new Operation(frame, start, end, sink, undefined, workloads[0] ?? router.default, db, protocol, NOTHING),
        lane,
      );
    });
    if (reply[0] !== MINUS) suspect();
    context.reply(reply);
  });
}

const authorityOf = (workload: Workload, key: Buffer): Side => workload.position.rule(key, 0, key.length).authority;
