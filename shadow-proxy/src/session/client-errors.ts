/**
 * Errors that clients were answered with: by the server that was their authority, and by kind, which is the error's
 * code (`WRONGPASS`, `NOAUTH`, `NOPERM`, `ERR`, …). The only count of them, for all who want to know what clients are
 * refused, such as what only fails since a workload is `live`, reads or refines it here.
 *
 * A command of a transaction that fails counts as a part of EXEC's reply, and so not at all.
 */
import { SIDES, type Side } from '../route/stage.js';
import type { ClientErrorsSnapshot } from '../telemetry/snapshot.js';

/** What the proxy itself refuses. */
export const BY_PROXY = 'PROXY';
/** Scripts can make up codes: beyond so many kinds they are counted together. */
const MAX_KINDS = 100;
const OTHER = '(other)';
/** An error's code, and how the proxy's own errors begin. */
const CODE = /^-([A-Z][A-Z0-9_]{0,31})(?:[ \r])/;
const OWN = /^-[A-Z]+ shadow-proxy: |^-EXECABORT shadow-proxy: /;
/** Of a reply, as much as shows its kind. */
const HEAD = 64;

export class ClientErrors {
  readonly #counts: Readonly<Record<Side, Map<string, number>>> = { source: new Map(), target: new Map() };

  /** Counts the error reply that begins at `start`. */
  count(authority: Side, buffer: Buffer, start: number, end: number): void {
    const head = buffer.toString('latin1', start, Math.min(end, start + HEAD));
    const kind = OWN.test(head) ? BY_PROXY : (CODE.exec(head)?.[1] ?? OTHER);
    const counts = this.#counts[authority];
    const known = counts.get(kind);
    if (known === undefined && counts.size >= MAX_KINDS) counts.set(OTHER, (counts.get(OTHER) ?? 0) + 1);
    else counts.set(kind, (known ?? 0) + 1);
  }

  snapshot(): ClientErrorsSnapshot {
    const [source, target] = SIDES.map((side) => Object.fromEntries(this.#counts[side]));
    return { source, target };
  }
}
