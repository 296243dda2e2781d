/** The gate `users`: compares the users of both servers. */
import {
  compareUsers,
  describeWider,
  digestOf,
  usersSeenBy,
  type UserComparison,
  type UserFacts,
} from '../command/users.js';
import type { WiderRight } from '../plan/plan.js';
import { text } from '../resp/decode.js';
import { SIDES, type Side } from '../route/stage.js';
import { number } from '../text/figures.js';
import type { Server } from '../upstream/server.js';
import { says, unknown, type GateAnswer } from './gate-answer.js';
import { soon } from './soon.js';

/**
 * Compares all users that clients log in as, and all others except the known ones. If a server hides passwords, the
 * logins of clients show them: before a promotion each login is tried at the target.
 * @param seen names of the users that clients have logged in as
 * @param known names of users that the plan expects on one server only
 */
export async function readAndCompareUsers(
  servers: Readonly<Record<Side, Server>>,
  seen: ReadonlySet<string>,
  known: readonly string[],
  memory: UserMemory,
): Promise<UserComparison> {
  const [source, target] = await Promise.all([readUsers(servers.source, memory), readUsers(servers.target, null)]);
  return compareSeen(servers, { source, target }, seen, known);
}

/** Compares as `readAndCompareUsers` does, without asking the source, which is down. */
export async function readUsersWithoutSource(
  servers: Readonly<Record<Side, Server>>,
  seen: ReadonlySet<string>,
  known: readonly string[],
  { source }: UserMemory,
): Promise<UserComparison> {
  const silent = source ?? { lines: null, ...commandsOf(servers.source) };
  return compareSeen(servers, { source: silent, target: await readUsers(servers.target, null) }, seen, known);
}

function compareSeen(
  servers: Readonly<Record<Side, Server>>,
  { source, target }: Readonly<Record<Side, UserFacts>>,
  seen: ReadonlySet<string>,
  known: readonly string[],
): UserComparison {
  const kit = SIDES.map((side) => servers[side].endpoint.credentials?.username ?? 'default').filter(
    (name) => name !== 'default',
  );
  const left = [...known, ...kit].filter((name) => !seen.has(name));
  const compared = compareUsers(source, target, new Set(left));
  // A process that has just connected knows the release of a server before it knows what the server is.
  const unasked = [source, target].flatMap(({ commands }, at) => (commands.size === 0 ? [SIDES[at]] : []));
  if (unasked.length > 0)
    return {
      ...compared,
      unknown: compared.unknown ?? `the ${unasked.join(' and the ')} did not list its commands yet: ask again`,
    };
  const unseen = compared.unproven.filter((name) => !seen.has(name));
  if (unseen.length === 0) return compared;
  return {
    ...compared,
    unknown: `a server lists its users without passwords (as ElastiCache does), and no client has logged in through the proxy in the last hour as ${unseen.slice(0, NAMED).join(', ')}${unseen.length > NAMED ? ` and ${unseen.length - NAMED} more` : ''}: have a client log in, or list users that no client uses in knownUsers`,
  };
}

/** The users that the source listed last: while it is down they do not change. */
export interface UserMemory {
  source: UserFacts | null;
}

/** Remembers the source's present users. */
export async function rememberUsers({ source }: Readonly<Record<Side, Server>>, memory: UserMemory): Promise<void> {
  if (source.up) await readUsers(source, memory);
}

const commandsOf = ({
  traits: { version, isKeydb },
  traits: {
    commands,
    supported: { categories },
  },
}: Server): Pick<UserFacts, 'commands' | 'categories' | 'release'> => ({
  commands,
  categories,
  release: { version, isKeydb },
});

/**
 * A server's users. Before Redis 6 there is only the password of `default`, which must be the kit's own.
 * @param memory of the source, for the time when it does not answer; null for the target
 */
async function readUsers(server: Server, memory: UserMemory | null): Promise<UserFacts> {
  const {
    needsPassword,
    endpoint,
    traits: { version },
  } = server;
  const reply = await soon(server.ask('ACL', 'LIST'));
  const known = commandsOf(server);
  const password = endpoint.credentials?.password;
  const login = { name: endpoint.credentials?.username ?? 'default', password: password ?? null };
  if (reply?.items) {
    const users = { ...usersSeenBy(server.fence.unfenced(reply.items.map(text)), login), ...known };
    if (memory !== null) memory.source = users;
    return users;
  }
  if (reply === null && memory !== null && memory.source !== null) return memory.source;
  if (!/^[1-5]\./.test(version) || (needsPassword && password === undefined)) return { lines: null, ...known };
  const digest = needsPassword ? digestOf(password!) : 'nopass';
  return { lines: [`user default on ${digest} ~* &* +@all`], ...known };
}

/** Maximum number of users and differences that an answer names. */
const NAMED = 5;

/**
 * @param refusedLogins users of clients whose login the target refused; null if it was not tried
 * @param accepted `gates.acceptRights`
 */
export function judgeUsers(
  users: UserComparison,
  refusedLogins: readonly string[] | null,
  accepted: readonly WiderRight[],
): GateAnswer {
  const refused = (refusedLogins ?? []).map((name) => `the target refused the login of ${name}`);
  const differences = [...users.differences, ...refused];
  const more = differences.length > NAMED ? `; and ${number(differences.length - NAMED)} more` : '';
  if (differences.length > 0)
    return says(
      false,
      `${differences.slice(0, NAMED).join('; ')}${more} (make both servers alike, or list users that no client uses in knownUsers)`,
    );
  if (users.unknown !== null) return unknown(users.unknown);
  const wider = users.wider.filter(({ right }) => !accepted.includes(right));
  if (wider.length > 0)
    return says(
      false,
      `KeyDB does not check the key patterns of a user for every command as Redis 7 does: ${wider.map(describeWider).join('; ')}; take the command from the user on both servers (ACL SETUSER ${wider[0].users[0]} -${wider[0].right}), or list it in gates.acceptRights`,
    );
  const { same, unproven, onlyTarget } = users;
  if (unproven.length > 0 && refusedLogins === null)
    return unknown(
      `a server lists ${unproven.slice(0, NAMED).join(', ')} without passwords (as ElastiCache does); promote and promote --dry-run try the logins of clients at the target`,
    );
  const others = onlyTarget.length === 0 ? '' : `; on the target only: ${onlyTarget.slice(0, NAMED).join(', ')}`;
  const what = unproven.length === 0 ? 'passwords and rules' : 'rules';
  return says(
    true,
    `${number(same)} ${same === 1 ? 'user has' : 'users have'} the same ${what} on both servers${refusedLogins === null ? '' : '; the logins of clients work on the target'}${others}`,
  );
}
