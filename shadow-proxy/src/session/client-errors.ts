/**
 * Counts the errors that clients got: by the server that was the authority, and by the error's code (`WRONGPASS`,
 * `NOAUTH`, `NOPERM`, `ERR`, …). There is no other count of them: the status, and the check of what fails only since a
 * workload is `live`, read this one.
 *
 * An error inside EXEC's reply is not counted.
 *
 * cspell:ignore maint
 */
import type { CommandTable } from '../command/table.js';
import { SIDES, type Side } from '../route/stage.js';
import type { ClientErrorOrigin, ClientErrorsSnapshot } from '../telemetry/snapshot.js';

/** The kind of errors that the proxy itself answers with. */
export const BY_PROXY = 'PROXY';
/** The most kinds that are counted apart. A script can make up any code; the rest is counted together. */
const MAX_KINDS = 100;
const OTHER = '(other)';
/** The most pairs of a command and a client that are listed. */
const MAX_ORIGINS = 50;
/** The code at the head of an error, and the head of the proxy's own errors. */
const CODE = /^-([A-Z][A-Z0-9_]{0,31})(?:[ \r])/;
const OWN = /^-[A-Z]+ shadow-proxy: |^-ERR Protocol error: /;
/** The first bytes of a reply or an argument; they are enough to show its kind. */
const HEAD = 64;

/** A subcommand that is a plain word. Any other argument could be a secret, and is never shown. */
const WORD = /^[a-z][a-z_-]{0,31}$/;

/**
 * The name under which an unknown command is listed, such as `client|maint_notifications` if its first word is a
 * command with subcommands.
 */
export function unknownIn(table: CommandTable, [first, second]: readonly Buffer[]): string {
  // The first bytes are enough: an argument may be longer than the longest string.
  const [name, word] = [first, second].map((each) => each?.toString('latin1', 0, HEAD).toLowerCase() ?? '');
  const isContainer = (table.byName(name)?.subcommands ?? null) !== null;
  return isContainer && WORD.test(word) ? `${name}|${word}` : 'unknown command';
}

export class ClientErrors {
  readonly #counts: Readonly<Record<Side, Map<string, number>>> = { source: new Map(), target: new Map() };
  readonly #origins = new Map<string, ClientErrorOrigin>();

  /**
   * Counts the error reply that begins at `start`.
   * @param command whose reply it is, such as `client setinfo`
   * @param client its name, or its host
   */
  count(authority: Side, buffer: Buffer, start: number, end: number, command: string, client: string): void {
    const head = buffer.toString('latin1', start, Math.min(end, start + HEAD));
    const kind = OWN.test(head) ? BY_PROXY : (CODE.exec(head)?.[1] ?? OTHER);
    const counts = this.#counts[authority];
    const known = counts.get(kind);
    if (known === undefined && counts.size >= MAX_KINDS) counts.set(OTHER, (counts.get(OTHER) ?? 0) + 1);
    else counts.set(kind, (known ?? 0) + 1);
    this.#note(authority, known === undefined && !counts.has(kind) ? OTHER : kind, command, client);
  }

  #note(side: Side, kind: string, command: string, client: string): void {
    const origin = { side, kind, command, client };
    const key = JSON.stringify(origin);
    const known = this.#origins.get(key);
    if (known !== undefined || this.#origins.size < MAX_ORIGINS)
      this.#origins.set(key, { ...origin, count: (known?.count ?? 0) + 1 });
  }

  /** The most frequent pairs first. Pairs beyond `MAX_ORIGINS` are in the counts by kind alone. */
  get origins(): readonly ClientErrorOrigin[] {
    return [...this.#origins.values()].sort((a, b) => b.count - a.count);
  }

  snapshot(): ClientErrorsSnapshot {
    const [source, target] = SIDES.map((side) => Object.fromEntries(this.#counts[side]));
    return { source, target };
  }
}
