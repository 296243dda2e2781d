/** What the gate `users` gets: the users of both servers, and how they differ. */
import { createHash } from 'node:crypto';
import { compareUsers, type UserComparison, type UserFacts } from '../command/users.js';
import { text } from '../resp/decode.js';
import { SIDES, type Side } from '../route/stage.js';
import type { Server } from '../upstream/server.js';
import { soon } from './soon.js';

/**
 * Users that clients log in as are compared, whatever else they are for.
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
  return compareUsers(source, target, new Set(left));
}

/**
 * What a server says of its users. Before Redis 6 there is only the password of `default`, which the kit's own must be.
 */
async function readUsers(server: Server): Promise<UserFacts> {
  const { commands, needsPassword, version, endpoint } = server;
  const { categories } = server.supported;
  const reply = await soon(server.ask('ACL', 'LIST'));
  if (reply?.items) return { lines: reply.items.map(text), commands, categories };
  const password = endpoint.credentials?.password;
  if (!/^[1-5]\./.test(version) || (needsPassword && password === undefined))
    return { lines: null, commands, categories };
  const login = needsPassword ? `#${createHash('sha256').update(password!).digest('hex')}` : 'nopass';
  return { lines: [`user default on ${login} ~* &* +@all`], commands, categories };
}
