/** Commands that the server which answers the client refuses inside MULTI, in its own words. */
import { compareVersions } from '../../command/release.js';
import { error } from '../../resp/encode.js';
import type { CommandContext } from '../context.js';

const NESTED = {
  multi: 'ERR MULTI calls can not be nested',
  watch: 'ERR WATCH inside MULTI is not allowed',
};

/** The version of the Valkey that answers; null if another server does. */
function valkeyOf({ clients: { sequencer } }: CommandContext): string | null {
  const {
    traits: { software },
  } = sequencer.servers[sequencer.router.default.position.keylessRule.authority];
  return software?.name === 'valkey' ? software.version : null;
}

/** Refuses the command at hand, and with it the transaction. */
export function refuseInMulti(context: CommandContext, command: string): void {
  const valkey = valkeyOf(context);
  const named = valkey !== null && compareVersions(valkey, '9.1') >= 0 ? `Command '${command}'` : 'Command';
  context.refuse(`ERR ${named} not allowed inside a transaction`);
}

/** Refuses the MULTI or WATCH at hand. Valkey then refuses the whole transaction, other servers do not. */
export function refuseNested(context: CommandContext, command: keyof typeof NESTED): void {
  const valkey = valkeyOf(context);
  if (valkey !== null && compareVersions(valkey, '8.1') >= 0) refuseInMulti(context, command);
  else context.reply(error(NESTED[command]));
}
