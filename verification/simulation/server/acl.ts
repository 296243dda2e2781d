/** ACL, and AUTH: who a client is. */
import { lower } from './options.js';
import { arrayOf, bulk, bulks, EMPTY_ARRAY, integer, mapOf, nil, OK, Refusal, setOf, SYNTAX } from './reply.js';
import type { Client, Run, State } from './state.js';
import { container } from './subcommand.js';
import { User } from './users.js';

const WRONG_PASSWORD = new Refusal('WRONGPASS invalid username-password pair or user is disabled.');

/** @throws {Refusal} */
export function authenticate(client: Client, name: string, password: string): void {
  const user = client.server.users.get(name);
  if (user === undefined || !user.accepts(password)) throw WRONG_PASSWORD;
  client.user = user;
}

const auth: Run = (client, args) => {
  if (args.length > 3) throw SYNTAX;
  if (args.length === 3) {
    authenticate(client, args[1], args[2]);
    return OK;
  }
  if (client.server.users.get('default')!.nopass)
    throw new Refusal(
      'ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?',
    );
  authenticate(client, 'default', args[1]);
  return OK;
};

export function describe(user: User): string {
  const words = [user.on ? 'on' : 'off', ...(user.nopass ? ['nopass'] : [])];
  for (const digest of user.passwords) words.push(`#${digest}`);
  if (user.keys.length > 0) words.push(user.keysText());
  if (!user.channels.includes('*')) words.push('resetchannels');
  words.push(...(user.channels.includes('*') ? ['&*'] : user.channels.map((each) => `&${each}`)));
  return [...words, rulesOf(user)].join(' ');
}

const rulesOf = ({ commands }: User): string =>
  (commands[0].endsWith('@all') ? commands : ['-@all', ...commands]).join(' ');

function getUser({ server, protocol }: Client, name: string): string {
  const user = server.users.get(name);
  if (user === undefined) return nil(protocol);
  const isRedis = server.engine === 'redis';
  const flags = [user.on ? 'on' : 'off'];
  if (!isRedis) {
    if (user.allKeys) flags.push('allkeys');
    if (user.channels.includes('*')) flags.push('allchannels');
    if (user.allCommands) flags.push('allcommands');
  }
  if (user.nopass) flags.push('nopass');
  const fields =
    bulk('flags') +
    setOf(flags.length, protocol) +
    flags.map(bulk).join('') +
    bulk('passwords') +
    bulks([...user.passwords]) +
    bulk('commands') +
    bulk(rulesOf(user)) +
    bulk('keys') +
    (isRedis ? bulk(user.keysText()) : bulks(user.keys.map(({ pattern }) => pattern))) +
    bulk('channels') +
    (isRedis ? bulk(user.channels.map((each) => `&${each}`).join(' ')) : bulks(user.channels));
  return mapOf(isRedis ? 6 : 5, protocol) + fields + (isRedis ? bulk('selectors') + EMPTY_ARRAY : '');
}

const inOrder = ({ users }: State): User[] => [...users.values()].sort((a, b) => (a.name < b.name ? -1 : 1));

/** Changes a user as a whole or not at all. */
export function setUser(server: State, name: string, rules: readonly string[]): void {
  const old = server.users.get(name);
  const next = new User(name);
  if (old === undefined) {
    if (server.config.get('acl-pubsub-default') === 'allchannels') next.apply('allchannels');
  } else {
    next.on = old.on;
    next.nopass = old.nopass;
    for (const digest of old.passwords) next.passwords.add(digest);
    next.keys = old.keys;
    next.channels = old.channels;
    next.commands = old.commands;
  }
  for (const rule of rules) {
    const named = /^[+-]([^@|]+)/.exec(rule)?.[1].toLowerCase();
    if (named !== undefined && !server.knows(named))
      throw new Refusal(`ERR Error in ACL SETUSER modifier '${rule}': Unknown command or category name in ACL`);
    next.apply(rule);
  }
  server.users.set(name, next);
  for (const client of server.clients.values()) if (client.user === old && old !== undefined) client.user = next;
}

export const ACL_COMMANDS: Readonly<Record<string, Run>> = {
  auth,
  acl: container({
    whoami: ({ user }) => bulk(user?.name ?? 'default'),
    users: ({ server }) => bulks(inOrder(server).map(({ name }) => name)),
    list: ({ server }) => bulks(inOrder(server).map((user) => `user ${user.name} ${describe(user)}`)),
    getuser: (client, args) => getUser(client, args[2]),
    setuser({ server }, args) {
      setUser(server, args[2], args.slice(3));
      return OK;
    },
    deluser({ server }, args) {
      let count = 0;
      for (const name of args.slice(2)) {
        if (name === 'default') throw new Refusal("ERR The 'default' user cannot be removed");
        const user = server.users.get(name);
        if (user === undefined) continue;
        server.users.delete(name);
        count++;
        for (const client of [...server.clients.values()]) if (client.user === user) client.close();
      }
      return integer(count);
    },
    log: (_client, args) => (args[2] !== undefined && lower(args[2]) === 'reset' ? OK : arrayOf(0)),
  }),
};
