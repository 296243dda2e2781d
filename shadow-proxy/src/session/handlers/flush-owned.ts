/**
 * FLUSHALL and FLUSHDB at a proxy of a cluster whose servers also have other shards' slots: only this shard's keys are
 * deleted. They are unlinked slot by slot, in the order of all commands, so the mirror deletes the same keys.
 */
import type { CommandSpec } from '../../command/table.js';
import { decodeReply, isError, wordOf } from '../../resp/decode.js';
import { OK } from '../../resp/encode.js';
import { hashSlot } from '../../route/slot.js';
import { SIDES, type Side } from '../../route/stage.js';
import type { CommandContext } from '../context.js';
import { alone, mayBegin } from './exclusive.js';
import { openPages } from './owned.js';
import { sendPart, type Part } from './split.js';

/** Takes the command at hand if it would delete other shards' keys. */
export function flushOwned(context: CommandContext, spec: CommandSpec): boolean {
  const { clients, parser } = context;
  if (clients.face === null || !clients.sharedTarget || !['flushall', 'flushdb'].includes(spec.name)) return false;
  if (parser.argc > 2 || (parser.argc === 2 && !/^a?sync$/i.test(wordOf(context.argument(1))))) {
    context.refuse('ERR syntax error');
    return true;
  }
  if (!mayBegin(context)) return true;
  clients.counts.sent(spec, clients.sequencer.router.default);
  alone(context, clients.side, async () => {
    for (const side of SIDES) {
      const refused = await unlinkAll(context, side);
      if (refused !== null) return context.reply(refused);
    }
    context.reply(OK);
  });
  return true;
}

/** Unlinks the shard's keys whose authority is this server, up to the first refusal. */
async function unlinkAll(context: CommandContext, side: Side): Promise<Buffer | null> {
  const { sequencer, owned } = context.clients;
  const { router, table, servers, lanes } = sequencer;
  if (!router.positions.some(({ whole, keylessRule }) => !whole || keylessRule.authority === side)) return null;
  const lane = await lanes[side].open(context.client.identity);
  const unlink = table.byName('unlink')!;
  for await (const keys of openPages(context, servers[side], owned!)) {
    for (const part of partsOf(context, side, keys)) {
      const reply = await sendPart(context, unlink, part, lane);
      if (isError(decodeReply(reply).reply)) return reply;
    }
  }
  return null;
}

/** One part for the keys of each slot and workload. */
function partsOf({ clients }: CommandContext, authority: Side, keys: readonly Buffer[]): Part[] {
  const parts = new Map<string, Part>();
  for (const key of keys) {
    const workload = clients.sequencer.router.match(key, 0, key.length);
    const rule = workload.position.rule(key, 0, key.length);
    if (rule.authority !== authority) continue;
    const id = `${hashSlot(key, 0, key.length)} ${workload.name}`;
    const part = parts.get(id) ?? { authority, workload, rule, mixed: false, places: [], keys: [] };
    parts.set(id, part);
    part.keys.push(key);
  }
  return [...parts.values()];
}
