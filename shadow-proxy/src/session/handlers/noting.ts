/** Remembers scripts that a server has accepted, by text or digest. */
import type { Sink } from '../../pipeline/operation.js';
import { argumentsOf } from '../../resp/decode.js';
import type { CommandContext } from '../context.js';

const MINUS = '-'.charCodeAt(0);

/**
 * The sink of a command with a script's text or digest. It notes that the server has accepted the script before the
 * client gets the reply.
 */
export const noting = (context: CommandContext): Sink => ({
  answered: (operation, buffer, start, end) => {
    if (buffer[start] !== MINUS) context.sequencer.scripts.accepted(argumentsOf(operation.frame, operation.start));
    context.answered(operation, buffer, start, end);
  },
  lost: (operation, reason) => context.lost(operation, reason),
});
