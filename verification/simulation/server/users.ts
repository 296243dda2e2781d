/** Users and their rules, as ACL SETUSER has them. */
import { createHash } from 'node:crypto';
import { matches } from './glob.js';
import { Refusal } from './reply.js';

/** What a rule needs to know of a command. */
export interface Ruled {
  readonly name: string;
  readonly categories: readonly string[];
}

interface KeyRule {
  readonly pattern: string;
  readonly reads: boolean;
  readonly writes: boolean;
}

const digestOf = (password: string): string => createHash('sha256').update(password, 'latin1').digest('hex');

export class User {
  on = false;
  nopass = false;
  readonly passwords = new Set<string>();
  keys: KeyRule[] = [];
  channels: string[] = [];
  /** `+get`, `-@all`, in the order in which they were given: the last that names a command decides. */
  commands: string[] = ['-@all'];
  readonly #allowed = new Map<string, boolean>();

  constructor(readonly name: string) {}

  get allKeys(): boolean {
    return this.keys.some(({ pattern, reads, writes }) => pattern === '*' && reads && writes);
  }

  get allCommands(): boolean {
    return this.commands.length === 1 && this.commands[0] === '+@all';
  }

  /** @throws {Refusal} */
  apply(rule: string): void {
    const [mark, text] = [rule[0], rule.slice(1)];
    if (mark === '>') return this.#addPassword(digestOf(text));
    if (mark === '#') return this.#addPassword(text.toLowerCase());
    if (mark === '<') return this.#removePassword(digestOf(text));
    if (mark === '!') return this.#removePassword(text.toLowerCase());
    if (mark === '~') return this.#addKeys({ pattern: text, reads: true, writes: true });
    if (mark === '&') return void (this.channels = [...this.channels.filter((each) => each !== text), text]);
    if (mark === '+' || mark === '-') return this.#addCommand(rule.toLowerCase());
    const access = /^%(R|W|RW|WR)~(.*)$/is.exec(rule);
    if (access !== null) {
      const kinds = access[1].toLowerCase();
      return this.#addKeys({ pattern: access[2], reads: kinds.includes('r'), writes: kinds.includes('w') });
    }
    const word = WORDS[rule.toLowerCase()];
    if (word === undefined) throw new Refusal(`ERR Error in ACL SETUSER modifier '${rule}': Syntax error`);
    word(this);
    this.#allowed.clear();
  }

  reset(): void {
    this.on = this.nopass = false;
    this.passwords.clear();
    this.keys = [];
    this.channels = [];
    this.commands = ['-@all'];
  }

  mayRun(command: Ruled): boolean {
    let allowed = this.#allowed.get(command.name);
    if (allowed === undefined) this.#allowed.set(command.name, (allowed = this.#judge(command)));
    return allowed;
  }

  mayUse(key: string, reads: boolean, writes: boolean): boolean {
    return this.keys.some((rule) => (!reads || rule.reads) && (!writes || rule.writes) && matches(rule.pattern, key));
  }

  mayListen(channel: string): boolean {
    return this.channels.some((pattern) => matches(pattern, channel));
  }

  accepts(password: string): boolean {
    return this.on && (this.nopass || this.passwords.has(digestOf(password)));
  }

  keysText(): string {
    return this.keys
      .map(({ pattern, reads, writes }) => (reads && writes ? `~${pattern}` : `%${reads ? 'R' : 'W'}~${pattern}`))
      .join(' ');
  }

  #judge({ name, categories }: Ruled): boolean {
    const container = name.split('|', 1)[0];
    let allowed = false;
    for (const rule of this.commands) {
      const named = rule.slice(1);
      const applies = named.startsWith('@')
        ? named === '@all' || categories.includes(named.slice(1))
        : named === name || named === container;
      if (applies) allowed = rule.startsWith('+');
    }
    return allowed;
  }

  #addPassword(digest: string): void {
    this.passwords.add(digest);
    this.nopass = false;
  }

  #removePassword(digest: string): void {
    if (!this.passwords.delete(digest))
      throw new Refusal(
        'ERR Error in ACL SETUSER modifier: The password you are trying to remove from the user does not exist',
      );
  }

  #addKeys(rule: KeyRule): void {
    this.keys = [...this.keys.filter(({ pattern }) => pattern !== rule.pattern), rule];
  }

  #addCommand(rule: string): void {
    this.#allowed.clear();
    if (rule === '+@all' || rule === '-@all') this.commands = [rule];
    else this.commands = [...this.commands.filter((each) => each.slice(1) !== rule.slice(1)), rule];
  }
}

const WORDS: Readonly<Record<string, (user: User) => void>> = {
  on: (user) => void (user.on = true),
  off: (user) => void (user.on = false),
  nopass(user) {
    user.nopass = true;
    user.passwords.clear();
  },
  resetpass(user) {
    user.nopass = false;
    user.passwords.clear();
  },
  allkeys: (user) => user.apply('~*'),
  resetkeys: (user) => void (user.keys = []),
  allchannels: (user) => user.apply('&*'),
  resetchannels: (user) => void (user.channels = []),
  allcommands: (user) => user.apply('+@all'),
  nocommands: (user) => user.apply('-@all'),
  reset: (user) => user.reset(),
  'sanitize-payload': () => undefined,
  'skip-sanitize-payload': () => undefined,
};
