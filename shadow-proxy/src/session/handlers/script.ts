/** Scripts and functions: what has to be done before one may run. */
import { KeyList, keysOf } from '../../command/keys.js';
import type { CommandSpec } from '../../command/table.js';
import { Script } from '../../script/catalog.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import { argumentCount, argumentsOf, locateArguments } from '../../resp/decode.js';
import { otherSide, type Side } from '../../route/stage.js';
import { exclusive } from './exclusive.js';
import type { Clients } from '../clients.js';
import type { Route } from '../routing.js';
import type { CommandContext } from '../context.js';
import { plain } from './plain.js';

/**
 * What a script without declared keys does to keys that it does not name:
 *
 * - `nothing`: it declares keys, or uses none; it is sent like any command.
 * - `reads`: the authority answers, and the mirror gets nothing.
 * - `writes`: it runs alone.
 */
export type Hidden = 'nothing' | 'reads' | 'writes';

/** Takes the script at hand if it must wait, run alone or be refused. @returns false if it can be sent by its keys */
export function takeScript(context: CommandContext, spec: CommandSpec, route: Route): boolean {
  const { clients } = context;
  const { sequencer } = clients;
  const { authority } = route.rule;
  if (!prepared(context, spec, context.command, authority)) return true;
  if (
    clients.subscribers.changing &&
    sequencer.scripts.mayPublish(context.command) &&
    clients.subscribers.holds(context, null)
  )
    return true;
  const hidden = hiddenBy(sequencer, spec, context.command, authority);
  const refused = refusalOf(clients, spec, context.command, hidden, authority);
  if (refused !== null) {
    clients.counts.addRefused();
    context.refuse(refused);
  } else if (hidden === 'nothing') return false;
  else if (hidden === 'writes') exclusive(context, spec);
  else {
    sequencer.counters.addHidden();
    plain(context, spec);
  }
  return true;
}

/**
 * Whether the script can be sent now. If the proxy knows its text and the server perhaps not, the text is loaded there.
 * For a function, the server is asked what it does. What the client's user may do is asked, too, because that decides
 * what the mirror gets. The client waits meanwhile.
 */
export function prepared(context: CommandContext, spec: CommandSpec, frame: Buffer, side: Side): boolean {
  const { sequencer } = context;
  const isMirrored = !spec.readOnlyScript && sequencer.router.mirrors;
  const learning = isMirrored ? sequencer.servers[side].privileges.learn(context.client.credentials) : null;
  if (learning !== null) {
    context.flow.retryWhen(learning);
    return false;
  }
  if (!isKnown(context, spec, frame, side)) return false;
  const changes = sequencer.changes[side];
  if (!isMirrored || changes.ready || !changes.mayStart || !sequencer.scriptEffects.hidesChanges(frame, 0)) return true;
  context.flow.retryWhen(changes.start());
  return false;
}

function isKnown(context: CommandContext, spec: CommandSpec, frame: Buffer, side: Side): boolean {
  const { servers, scripts } = context.sequencer;
  const server = servers[side];
  const args = argumentsOf(frame);
  if (args.length < 3 || !server.traits.supported.knows(spec)) return true;
  if (spec.name.startsWith('fcall')) {
    if (scripts.functions.knows(server, args[1].toString('latin1'))) return true;
    context.flow.retryWhen(scripts.functions.learn(server));
    return false;
  }
  const script = scripts.find(args);
  if (!(script instanceof Script)) return true;
  noteLacking(context.clients, spec, frame, script, side);
  // A text that no server has accepted is not loaded for a client: its user may not be allowed to EVAL.
  if (!spec.name.startsWith('evalsha') || !script.accepted || scripts.knownTo(server, script)) return true;
  context.flow.retryWhen(scripts.load(server, script));
  return false;
}

/** Counts commands of a script that the other server lacks, or that would crash it. */
function noteLacking(
  { support, sequencer: { servers } }: Clients,
  spec: CommandSpec,
  frame: Buffer,
  script: Script,
  side: Side,
): void {
  const lacks = otherSide(side);
  const other = servers[lacks];
  if (script.hasShebang && other.traits.commands.size > 0 && !other.traits.commands.has('fcall'))
    support.inScript(spec, frame, `${spec.name} #!lua`, lacks);
  if (script.endsKeydb(argumentCount(frame, 0)) && other.traits.isKeydb)
    support.inScript(spec, frame, `${spec.name} unpack`, lacks);
  support.offerScript(spec, frame, script);
}

/** What the EVAL, EVALSHA or FCALL in `frame` does to keys that it does not name. */
export function hiddenBy({ table, scripts, servers }: Sequencer, spec: CommandSpec, frame: Buffer, side: Side): Hidden {
  if (!spec.readOnlyScript && servers[side].traits.supported.knows(spec) && scripts.swapDatabases(frame))
    return 'writes';
  const [argStart, argEnd]: number[][] = [[], []];
  // The script has keys, or its number of keys is one that the server refuses.
  if (keysOf(spec, frame, argStart, argEnd, locateArguments(frame, 0, argStart, argEnd), new KeyList()) !== 0)
    return 'nothing';
  const routine = scripts.find(argumentsOf(frame));
  if (routine?.callsCommands === false) return 'nothing';
  if (spec.readOnlyScript || !servers[side].traits.supported.knows(spec) || routine?.writesNothing(table) === true)
    return 'reads';
  return 'writes';
}

/** Whether the command is a script that uses, or may use, keys that it does not declare. */
export function usesKeys({ scripts, table }: Sequencer, spec: CommandSpec, frame: Buffer): boolean {
  if (spec.handling !== 'script') return false;
  const { reads, writes } = scripts.undeclared(argumentsOf(frame), table);
  return reads?.length !== 0 || writes?.length !== 0;
}

/** Why the script in `frame` cannot be run now; null if it can. */
export function refusalOf(
  { sequencer, sharedTarget, foreignKeys }: Clients,
  spec: CommandSpec,
  frame: Buffer,
  hidden: Hidden,
  authority: Side,
): string | null {
  const { scripts, router } = sequencer;
  const name = spec.name.toUpperCase();
  const args = argumentsOf(frame);
  const notOurs = foreignKeys.mayHoldForeignKeys;
  const routine = sharedTarget || notOurs ? scripts.find(args) : undefined;
  const shared = 'is refused: other shards keep their keys on the same target';
  if (routine?.flushes === true)
    return `ERR shadow-proxy: ${name} of a script with FLUSHALL, FLUSHDB or SWAPDB ${sharedTarget ? shared : 'is refused: the target may hold keys that the proxy did not write'}`;
  if (sharedTarget && routine?.asksForAllKeys === true && authority === 'target')
    return `ERR shadow-proxy: ${name} of a script with SCAN, KEYS, DBSIZE or RANDOMKEY ${shared}`;
  if (hidden === 'nothing' || router.oneAuthority) return null;
  if (scripts.swapDatabases(frame))
    return `ERR shadow-proxy: ${name} of a script with SWAPDB is refused while workloads have different authorities`;
  if (!usesKeys(sequencer, spec, frame)) return null;
  return `ERR shadow-proxy: ${name} without declared keys is refused while workloads have different authorities: pass the keys that the script touches as KEYS[1], KEYS[2], ...`;
}
