/**
 * The most arguments that a command may have. KeyDB, and Redis before 7.0, close the connection at more, and many
 * clients share that connection. The limit is judged when the command runs, by the servers that its keys use then: so
 * it follows a stage change at once.
 */
import { KeyList, keysOf } from '../command/keys.js';
import type { CommandSpec } from '../command/table.js';
import { SIDES, type Side, type StageRule } from '../route/stage.js';
import type { Server } from '../upstream/server.js';
import type { CommandContext } from './context.js';

/** The limit in `processMultibulkBuffer` of KeyDB 6.3.4 and of Redis 6.2. The command's name counts as an argument. */
export const LEAST_MAX_ARGUMENTS = 1024 * 1024;

/** A target whose version is unknown counts as KeyDB. */
const isLimited = ({ side, traits: { version, isBefore70 } }: Server): boolean =>
  isBefore70 || (side === 'target' && version === '');

/**
 * Refuses the command at hand, which has more than `LEAST_MAX_ARGUMENTS`, if one of its servers would.
 * @returns whether it was refused
 */
export function refusesArguments(context: CommandContext, spec: CommandSpec | undefined, isRetry: boolean): boolean {
  const { servers } = context.sequencer;
  const limited = SIDES.filter((side) => isLimited(servers[side]));
  if (limited.length === 1 && spec !== undefined && !isRetry)
    context.clients.support.tooLong(spec, context.parser, limited[0], LEAST_MAX_ARGUMENTS);
  const used = sidesOf(context, spec);
  const [side] = limited.filter((each) => used.has(each));
  if (side === undefined) return false;
  const name = spec === undefined ? 'the command' : spec.name.replace('|', ' ').toUpperCase();
  context.refuse(
    `ERR shadow-proxy: ${name} has ${context.parser.argc} arguments: the ${side} takes at most ${LEAST_MAX_ARGUMENTS}; send fewer in each command`,
  );
  return true;
}

/** The servers that get the command. */
function sidesOf({ parser, clients }: CommandContext, spec: CommandSpec | undefined): ReadonlySet<Side> {
  const { router } = clients.sequencer;
  const { frame, argStart, argEnd, argc } = parser;
  const sides = new Set<Side>();
  const add = ({ authority, mirrorsWrites }: StageRule): void => {
    for (const side of mirrorsWrites ? SIDES : [authority]) sides.add(side);
  };
  const hasKeys = spec?.handling === 'keyed' || spec?.handling === 'script';
  const keys = new KeyList();
  const found = hasKeys ? keysOf(spec, frame, argStart, argEnd, argc, keys) : 0;
  if (found <= 0) add(router.default.position.keylessRule);
  for (let i = 0; i < found && sides.size < SIDES.length; i++) {
    const at = keys.index[i];
    add(router.match(frame, argStart[at], argEnd[at]).position.rule(frame, argStart[at], argEnd[at]));
  }
  return sides;
}
