/** What the gate `users` gets: the users of both servers, and how they differ. */
import { compareUsers, digestOf, usersSeenBy, type UserComparison, type UserFacts } from '../command/users.js';
import { text } from '../resp/decode.js';
import { SIDES, type Side } from '../route/stage.js';
import type { Server } from '../upstream/server.js';
import { soon } from './soon.js';

/**
 * Users that clients log in as are compared, whatever else they are for. Where a server hides passwords, the logins of
 * clients prove them: before a promotion each is tried at the target.
 * @param seen names of the users that clients have logged in as
 * @param known names that the plan says are to be on one server only
 */
export async function lookAtUsers(
  servers: Readonly<Record<Side, Server>>,
  seen: ReadonlySet<string>,
  known: readonly string[],
): Promise<UserComparison> {
  const kit = SIDES.map((side) => servers[side].endpoint.credentials?.username ?? 'default').filter(
    (name) => name !== 'default',
  );
  const left = [...known, ...kit].filter((name) => !seen.has(name));
  const [source, target] = await Promise.all([servers.source, servers.target].map(readUsers));
  const compared = compareUsers(source, target, new Set(left));
  const unseen = compared.unproven.filter((name) => !seen.has(name));
  if (unseen.length === 0) return compared;
  return {
    ...compared,
    unknown: `a server lists its users without passwords (as ElastiCache does), and no client has logged in through the proxy in the last hour as ${unseen.slice(0, NAMED).join(', ')}${unseen.length > NAMED ? ` and ${unseen.length - NAMED} more` : ''}: have a client log in, or list users that no client uses in knownUsers`,
  };
}

/** Users that an answer names. */
const NAMED = 5;

/**
 * What a server says of its users. Before Redis 6 there is only the password of `default`, which the kit's own must be.
 */
async function readUsers(server: Server): Promise<UserFacts> {
  const { commands, needsPassword, version, endpoint } = server;
  const { categories } = server.supported;
  const reply = await soon(server.ask('ACL', 'LIST'));
  const password = endpoint.credentials?.password;
  const login = { name: endpoint.credentials?.username ?? 'default', password: password ?? null };
  if (reply?.items) return { ...usersSeenBy(reply.items.map(text), login), commands, categories };
  if (!/^[1-5]\./.test(version) || (needsPassword && password === undefined))
    return { lines: null, commands, categories };
  const digest = needsPassword ? digestOf(password!) : 'nopass';
  return { lines: [`user default on ${digest} ~* &* +@all`], commands, categories };
}
