/**
 * Describes in words which commands of which clients got errors.
 *
 * cspell:ignore maint
 */
import type { Side } from '../route/stage.js';
import { number } from '../text/figures.js';
import type { ClientErrorOrigin } from './snapshot.js';

/** Maximum number of origins that are named. */
const MOST = 3;
/**
 * Commands that client libraries send when they connect, and whose failure they tolerate: an operator may ignore these
 * errors.
 */
export const SENT_ON_CONNECT: Readonly<Record<string, string>> = {
  'client setinfo': 'Redis before 7.2 and KeyDB do not know it',
  'client maint_notifications': 'only Redis Enterprise knows it',
};
/** The error code for a command that the server does not know. */
const UNKNOWN = 'ERR';

/** ` (5 CLIENT SETINFO of 127.0.0.1)`; empty if nothing is known. */
export function originsOf(origins: readonly ClientErrorOrigin[], side: Side): string {
  const its = origins.filter((origin) => origin.side === side);
  if (its.length === 0) return '';
  const named = its
    .slice(0, MOST)
    .map(({ count, command, client }) => `${number(count)} ${command.toUpperCase()} of ${client}`);
  const harmless = new Set(
    its.slice(0, MOST).flatMap(({ command, kind }) => (kind === UNKNOWN && command in SENT_ON_CONNECT ? command : [])),
  );
  const notes = [...harmless].map((command) => `${command.toUpperCase()}: ${SENT_ON_CONNECT[command]}`);
  const note = notes.length === 0 ? '' : `. Harmless, clients work without it: ${notes.join('; ')}`;
  return ` (${[...named, ...(its.length > MOST ? ['…'] : [])].join(', ')}${note})`;
}
