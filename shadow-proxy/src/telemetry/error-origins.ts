/** Which commands of which clients got errors, in words. */
import type { Side } from '../route/stage.js';
import { number } from '../text/figures.js';
import type { ClientErrorOrigin } from './snapshot.js';

/** Those that are named. */
const MOST = 3;
/** What an operator may leave as it is. */
const HARMLESS: Readonly<Record<string, string>> = {
  'client setinfo': 'Redis before 7.2 does not know it, and client libraries ignore the error',
};

/** ` (5 CLIENT SETINFO of 127.0.0.1)`; empty where nothing is known. */
export function originsOf(origins: readonly ClientErrorOrigin[], side: Side): string {
  const its = origins.filter((origin) => origin.side === side);
  if (its.length === 0) return '';
  const named = its
    .slice(0, MOST)
    .map(({ count, command, client }) => `${number(count)} ${command.toUpperCase()} of ${client}`);
  const notes = [...new Set(its.slice(0, MOST).flatMap(({ command }) => HARMLESS[command] ?? []))];
  return ` (${[...named, ...(its.length > MOST ? ['…'] : [])].join(', ')}${notes.map((note) => `: ${note}`).join('')})`;
}
