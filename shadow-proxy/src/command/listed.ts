/** What a server's own `COMMAND` says of a command that the table does not know. */
import { text, type Reply } from '../resp/decode.js';

export interface ListedCommand {
  readonly writes: boolean;
  readonly blocks: boolean;
  /** Which of `argc` arguments are keys; none where that does not show. */
  keys(argc: number): number[];
}

/** By name in lower case, `container|subcommand`; of the entries of a reply to `COMMAND`. */
export function listedCommands(reply: Reply): Map<string, ListedCommand> {
  const found = new Map<string, ListedCommand>();
  const add = ({ items }: Reply): void => {
    // Of one that says no more than its name nothing is known.
    if (items === null || items.length < STEP_AT + 1) return;
    const flags = new Set(items[2].items?.map((flag) => text(flag)));
    const [first, last, step] = items.slice(STEP_AT - 2, STEP_AT + 1).map((number) => Number(text(number)));
    // Keys that depend on options, or on their number, are not where these say.
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

/** Where an entry of `COMMAND` has the step between its keys. */
const STEP_AT = 5;
/** Where an entry of `COMMAND` lists its subcommands, since Redis 7. */
const SUBCOMMANDS_AT = 9;

function positions(first: number, last: number, step: number, argc: number): number[] {
  const found: number[] = [];
  for (let at = first; at <= last && at < argc; at += step) found.push(at);
  return found;
}
