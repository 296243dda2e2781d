/** Joins the rows of all families. */
import type { Row, Rows } from './row.js';
import { GEO } from './rows/geo.js';
import { HASHES } from './rows/hashes.js';
import { KEYS } from './rows/keys.js';
import { LISTS } from './rows/lists.js';
import { SERVER } from './rows/server.js';
import { SETS } from './rows/sets.js';
import { SORTED_SETS } from './rows/sorted-sets.js';
import { STREAMS } from './rows/streams.js';
import { STRINGS } from './rows/strings.js';

const FAMILIES: readonly Rows[] = [KEYS, STRINGS, HASHES, LISTS, SETS, SORTED_SETS, GEO, STREAMS, SERVER];

const rows = new Map<string, Row>();
for (const family of FAMILIES) {
  for (const [name, row] of Object.entries(family)) {
    if (rows.has(name)) throw new Error(`${name} has two rows`);
    rows.set(name, row);
  }
}

/** What is known by hand about the command with this name (in lower case, `container|subcommand`). */
export const rowOf = (name: string): Row | undefined => rows.get(name);

/** Every name that has a row: all must be in the table. */
export const namesInRows = (): IterableIterator<string> => rows.keys();
