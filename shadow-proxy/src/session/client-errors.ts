/**
 * Errors that clients were answered with: by the server that was their authority, and by kind, which is the error's
 * code (`WRONGPASS`, `NOAUTH`, `NOPERM`, `ERR`, …). The only count of them, for all who want to know what clients are
 * refused, such as what only fails since a workload is `live`, reads or refines it here.
 *
 * A command of a transaction that fails counts as a part of EXEC's reply, and so not at all.
 *
 * cspell:ignore maint
 */
import type { CommandTable } from '../command/table.js';
import { SIDES, type Side } from '../route/stage.js';
import type { ClientErrorOrigin, ClientErrorsSnapshot } from '../telemetry/snapshot.js';

/** What the proxy itself refuses. */
export const BY_PROXY = 'PROXY';
/** Scripts can make up codes: beyond so many kinds they are counted together. */
const MAX_KINDS = 100;
const OTHER = '(other)';
/** Pairs of a command and a client that are listed. */
const MAX_ORIGINS = 50;
/** An error's code, and how the proxy's own errors begin. */
const CODE = /^-([A-Z][A-Z0-9_]{0,31})(?:[ \r])/;
const OWN = /^-[A-Z]+ shadow-proxy: |^-ERR Protocol error: /;
/** Bytes of a reply or an argument that are enough to show its kind. */
const HEAD = 64;

/** A subcommand that is a word: an argument that could be a secret is never shown. */
const WORD = /^[a-z][a-z_-]{0,31}$/;

/**
 * What a command is called that the table lacks: `client|maint_notifications`, where its first word is known and takes
 * a subcommand.
 */
export function unknownIn(table: CommandTable, [first, second]: readonly Buffer[]): string {
  // Their heads show it: an argument may be longer than any string.
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

  /** The most frequent origins first; beyond `MAX_ORIGINS` only the counts by kind are complete. */
  get origins(): readonly ClientErrorOrigin[] {
    return [...this.#origins.values()].sort((a, b) => b.count - a.count);
  }

  snapshot(): ClientErrorsSnapshot {
    const [source, target] = SIDES.map((side) => Object.fromEntries(this.#counts[side]));
    return { source, target };
  }
}
