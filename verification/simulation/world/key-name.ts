/** What a key is called in the checkers: its database and its name. */
export type KeyName = `${number} ${string}`;

export interface Parts {
  readonly db: number;
  readonly name: string;
  /** The name as bytes. */
  readonly bytes: Buffer;
  /** What the proxy calls it: `database:name`. */
  readonly id: string;
  /** The group of a key that is followed, such as `0 ls3.0` of `0 ls3.0:s1`; null where it is not. */
  readonly group: KeyName | null;
}

/** Clients use the same names again and again. */
const KNOWN = 50_000;
const known = new Map<KeyName, Parts>();
/** By database: one text for each name, which is hashed once. */
const names: Map<string, KeyName>[] = [];

export function keyName(db: number, name: string): KeyName {
  const named = (names[db] ??= new Map<string, KeyName>());
  const before = named.get(name);
  if (before !== undefined) return before;
  const key: KeyName = `${db} ${name}`;
  if (named.size >= KNOWN) named.clear();
  named.set(name, key);
  return key;
}

export function partsOf(key: KeyName): Parts {
  const before = known.get(key);
  if (before !== undefined) return before;
  const space = key.indexOf(' ');
  const name = key.slice(space + 1);
  const db = Number(key.slice(0, space));
  const colon = key.indexOf(':');
  const group = colon === -1 ? null : (key.slice(0, colon) as KeyName);
  const parts = { db, name, bytes: Buffer.from(name, 'latin1'), id: `${db}:${name}`, group };
  if (known.size >= KNOWN) known.clear();
  known.set(key, parts);
  return parts;
}
