/** What a key is called in the checkers: its database and its name. */
export type KeyName = `${number} ${string}`;
