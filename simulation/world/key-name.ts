/** What a key is called in the checkers: its database and its name. */
export type KeyName = `${number} ${string}`;

export interface Parts {
  readonly db: number;
  readonly name: string;
  /** The name as bytes. */
  readonly bytes: Buffer;
  /** What the proxy calls it: `database:name`. */
  readonly id: string;
}

/** Clients use the same names again and again. */
const KNOWN = 50_000;
const known = new Map<KeyName, Parts>();

export function partsOf(key: KeyName): Parts {
  const before = known.get(key);
  if (before !== undefined) return before;
  const space = key.indexOf(' ');
  const name = key.slice(space + 1);
  const db = Number(key.slice(0, space));
  const parts = { db, name, bytes: Buffer.from(name, 'latin1'), id: `${db}:${name}` };
  if (known.size >= KNOWN) known.clear();
  known.set(key, parts);
  return parts;
}
