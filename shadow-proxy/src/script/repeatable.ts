/** Whether a replicated script may call a command as the script writes it (`repeatable` of the command's row). */
import type { Repeatable } from '../command/row.js';

/** An argument of a call, as the script writes it. */
export interface WrittenArgument {
  /** Its text, if it is a literal; else null. */
  readonly literal: string | null;
  /** Whether the argument may be any number of arguments. */
  readonly open: boolean;
}

/** Whether the arguments are among those of the list. */
export function areRepeatable({ arguments: form, options }: Repeatable, args: readonly WrittenArgument[]): boolean {
  const [, fixed, optional, repeated] = /^([kvn]*)(x?)(?:\(([kvn]+)\))?$/.exec(form)!;
  let at = fixed.length;
  if (args.length < at || args.slice(0, at).some(({ open }) => open)) return false;
  while (optional !== '' && at < args.length) {
    const option = args[at].literal?.toLowerCase() ?? '';
    if (!Object.hasOwn(options, option)) break;
    at += 1 + options[option];
    if (at > args.length) return false;
  }
  const rest = args.slice(at);
  if (repeated === undefined) return rest.length === 0;
  return rest.at(-1)?.open === true || (rest.length > 0 && rest.length % repeated.length === 0);
}
