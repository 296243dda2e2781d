/** What a key is called in the checkers: its database and its name. */
export type KeyName = `${number} ${string}`;

export function partsOf(key: KeyName): { readonly db: number; readonly name: string } {
  const space = key.indexOf(' ');
  return { db: Number(key.slice(0, space)), name: key.slice(space + 1) };
}
