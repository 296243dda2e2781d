/**
 * Commands that name a database which the proxy may use on one server only: they are refused while writes go to both
 * servers.
 */
import { otherDatabase } from '../../script/frame-keys.js';
import { Command } from '../../command/command.js';
import type { CommandSpec } from '../../command/table.js';
import { wordOf } from '../../resp/decode.js';
import { otherSide, type Side } from '../../route/stage.js';
import type { DatabaseLimit } from '../../upstream/database-limit.js';
import type { CommandContext } from '../context.js';

/** The database number in the text; null if SELECT would refuse the text. */
export const databaseOf = (text: string): number | null => (/^(0|[1-9]\d{0,8})$/.test(text) ? Number(text) : null);

/**
 * Why the command at hand is refused for a database that it names; null if it is not. If the authority refuses the
 * database, its own error answers.
 */
export function refusalOfDatabases(context: CommandContext, { name }: CommandSpec): string | null {
  const { router, servers } = context.sequencer;
  if (!NAMING.has(name) || !router.mirrors) return null;
  const { authority } = router.default.position.keylessRule;
  const other = otherSide(authority);
  const limit = servers[other].databaseLimit;
  if (limit === null) return null;
  const end = servers[authority].databaseLimit?.count ?? Infinity;
  const beyond = namedIn(context, name).find((db) => db !== null && db >= limit.count && db < end);
  return beyond === undefined ? null : `ERR shadow-proxy: ${name.toUpperCase()} is refused: ${describe(other, limit)}`;
}

const NAMING: ReadonlySet<string> = new Set(['select', 'move', 'copy', 'swapdb']);

function namedIn(context: CommandContext, name: string): (number | null)[] {
  const argument = (index: number): number | null =>
    index < context.parser.argc ? databaseOf(wordOf(context.argument(index))) : null;
  switch (name) {
    case 'select':
      return [argument(1)];
    case 'swapdb':
      return [argument(1), argument(2)];
    default:
      return [otherDatabase(new Command(context.command))];
  }
}

const describe = (side: Side, { count, refusal }: DatabaseLimit): string =>
  `the ${side} lets the proxy into ${count === 1 ? 'database 0' : `databases 0 to ${count - 1}`} only${refusal === null ? '' : ` (${refusal})`}, and writes go to both servers`;
