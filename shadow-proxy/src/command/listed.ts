/** The entry of a server's own `COMMAND` for a command that the table does not know. */
import { text, type Reply } from '../resp/decode.js';

export interface ListedCommand {
  readonly writes: boolean;
  readonly blocks: boolean;
  /** Which of `argc` arguments are keys; empty if that is unknown. */
  keys(argc: number): number[];
}

/** The entries of a reply to `COMMAND`, by name in lower case, `container|subcommand`. */
export function listedCommands(reply: Reply): Map<string, ListedCommand> {
  const found = new Map<string, ListedCommand>();
  const add = ({ items }: Reply): void => {
    // An entry with only a name shows nothing.
    if (items === null || items.length < STEP_AT + 1) return;
    const flags = new Set(items[2].items?.map((flag) => text(flag)));
    const [first, last, step] = items.slice(STEP_AT - 2, STEP_AT + 1).map((number) => Number(text(number)));
    // If keys depend on options, or on their number, these positions are wrong.
    const shows = first > 0 && step > 0 && !flags.has('movablekeys');
    found.set(text(items[0]).toLowerCase(), {
      writes: flags.has('write'),
      blocks: flags.has('blocking'),
      keys: (argc) => (shows ? positions(first, last < 0 ? argc + last : last, step, argc) : []),
    });
    for (const subcommand of items[SUBCOMMANDS_AT]?.items ?? []) add(subcommand);
  };
  for (const each of reply.items ?? []) add(each);
  return found;
}

/** Index of the step between keys in an entry of `COMMAND`. */
const STEP_AT = 5;
/** Index of the subcommands in an entry of `COMMAND`, since Redis 7. */
const SUBCOMMANDS_AT = 9;

function positions(first: number, last: number, step: number, argc: number): number[] {
  const found: number[] = [];
  for (let at = first; at <= last && at < argc; at += step) found.push(at);
  return found;
}
