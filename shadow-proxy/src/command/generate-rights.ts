/**
 * Writes `rights.generated.ts` from what two running servers allow the same user:
 *
 *   node dist/shadow-proxy/src/command/generate-rights.js redis://127.0.0.1:6379 redis://127.0.0.1:6390 \
 *     shadow-proxy/src/command/rights.generated.ts
 *
 * The first is a Redis 7, whose `COMMAND DOCS` lists commands, options and alternatives; the second is a KeyDB. **All
 * keys, scripts and functions of both are deleted, and a user is created.** The user has one key pattern and one
 * channel pattern. Each call is sent with all names inside the patterns, and with each name outside. Calls that differ
 * are also sent in a transaction and in a script. The same two servers always give the same file.
 */
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { isError, text, type Reply } from '../resp/decode.js';
import { commandDocs } from './docs-calls.js';
import { DUMP, HOLDS, HOLDS_FOR, probesOf, type Command, type Probe } from './form-calls.js';
import { Prober } from './form-prober.js';
import { NOT_PROBED, smallest, versionOf, type Outcome } from './generate-forms.js';
import type { GeneratedRight } from './generated-rows.js';

/** The answers of both servers. */
export interface ProbedRights {
  readonly rights: readonly GeneratedRight[];
  /** Number of calls that were sent to each server. */
  readonly calls: number;
  /** Commands that both servers refuse if a name is outside the patterns. */
  readonly checked: readonly string[];
  readonly versions: readonly [source: string, target: string];
}

/** Not sent: these commands change the login, or the users. */
const ABOUT_USERS = /^(auth|hello|acl\|(setuser|deluser))$/;

/**
 * Calls that `COMMAND DOCS` does not list: commands that only KeyDB has, and those that generate-forms.ts does not
 * send. KEYDB.NHGET, KEYDB.NHSET and KEYDB.CRON are missing, because they may end the server; Ansible's role denies
 * them to all users.
 */
const MORE: readonly (readonly [group: string, call: string])[] = [
  ['hash', 'KEYDB.HRENAME k f g'],
  ['string', 'KEYDB.MEXISTS k k2'],
  ['hash', 'EXPIREMEMBER k f 100'],
  ['hash', 'EXPIREMEMBERAT k f 4102444800'],
  ['hash', 'PEXPIREMEMBERAT k f 4102444800000'],
  ['string', 'EXPDEL k'],
  ['string', 'STRALGO LCS KEYS k k2'],
  ['string', 'DEBUG OBJECT k'],
  ['string', 'DEBUG DIGEST-VALUE k'],
];

const [INSIDE, OUTSIDE] = ['in:', 'out:'];
const [USER, PASSWORD] = ['restricted', 'secret'];
/** Arguments that name a key or a channel, or are a pattern of such names. */
const NAMES = new Set(['k', 'k2', 'k3', 'd', 'c', '*']);

export type CallContext = 'plain' | 'transaction' | 'script';
const WRAPPED: Readonly<Record<CallContext, (call: Command) => Command[]>> = {
  plain: (call) => [call],
  transaction: (call) => [['MULTI'], call, ['EXEC']],
  script: (call) => [['EVAL', 'return redis.pcall(unpack(ARGV))', '0', ...call]],
};

/** Sends calls of each command to both servers, as a user with patterns. This deletes their data. */
export async function probeRights(sourceUrl: string, targetUrl: string): Promise<ProbedRights> {
  const servers = [new Prober(sourceUrl), new Prober(targetUrl)] as const;
  try {
    const [docsReply] = await servers[0].ask([['COMMAND', 'DOCS']]);
    const docs = commandDocs(docsReply).filter(({ name }) => !NOT_PROBED.test(name) && !ABOUT_USERS.test(name));
    const more = MORE.map(([group, call]): Probe => {
      const args = call.split(' ');
      return { command: args[0].toLowerCase(), group, words: [], args, cost: 0 };
    });
    const rules = ['reset', 'resetchannels', 'on', `>${PASSWORD}`, `~${INSIDE}*`, `&${INSIDE}*`, '+@all'];
    for (const server of servers) {
      const [made] = await server.ask([['ACL', 'SETUSER', USER, ...rules]]);
      if (isError(made)) throw new Error(`no user can be made: ${text(made)}`);
    }
    const probes = [...docs.flatMap(probesOf), ...more].filter(({ args }) => !args.includes(DUMP));
    const seen = new Map<string, ComparedCall[]>();
    let calls = 0;
    for (const probe of probes.sort((a, b) => (a.command < b.command ? -1 : a.command > b.command ? 1 : 0))) {
      for (const named of namings(probe)) {
        const outcomes = await both(servers, probe, named.args, 'plain');
        calls++;
        let at = seen.get(probe.command);
        if (at === undefined) seen.set(probe.command, (at = []));
        at.push({ probe, ...named, source: outcomes[0], target: outcomes[1] });
      }
    }
    const rights: GeneratedRight[] = [];
    for (const own of seen.values())
      for (const [who, outcomes] of [
        ['target', wider(own, 'source', 'target')],
        ['source', wider(own, 'target', 'source')],
      ] as const)
        for (const { words, probe, problem } of withoutLonger(smallest(outcomes))) {
          const args = problem!.split(' ');
          const ways: CallContext[] = ['plain'];
          for (const way of ['transaction', 'script'] as const) {
            const [source, target] = await both(servers, probe, args, way);
            if ((who === 'target' ? target : source) === 'done') ways.push(way);
          }
          rights.push([probe.command, who, words.join(' '), ways.join(' '), problem!]);
        }
    const checked = [...seen].filter(([, own]) =>
      own.some(({ isInside, source, target }) => !isInside && source === 'refused' && target === 'refused'),
    );
    return {
      rights,
      calls,
      checked: checked.map(([command]) => command),
      versions: [await versionOf(servers[0]), await versionOf(servers[1])],
    };
  } finally {
    for (const server of servers) server.close();
  }
}

/** The server's answer to a call; `failed` stands for any error except that for a missing right. */
type CallResult = 'done' | 'refused' | 'failed' | 'unknown';

interface NamedCall {
  readonly args: readonly string[];
  readonly isInside: boolean;
}

interface ComparedCall extends NamedCall {
  readonly probe: Probe;
  readonly source: CallResult;
  readonly target: CallResult;
}

/** The call with all its names inside the patterns, and with each of them outside. */
function namings({ args }: Probe): NamedCall[] {
  const at = args.flatMap((arg, i) => (i > 0 && NAMES.has(arg) ? [i] : []));
  return [-1, ...at].map((outside) => ({
    args: args.map((arg, i) => (at.includes(i) ? `${i === outside ? OUTSIDE : INSIDE}${arg}` : arg)),
    isInside: outside === -1,
  }));
}

/** Groups whose commands leave their connection as it is. */
const KEEPS_CONNECTION = new Set([...Object.keys(HOLDS), 'scripting']);

async function both(
  servers: readonly Prober[],
  { command, group }: Probe,
  args: readonly string[],
  way: CallContext,
): Promise<CallResult[]> {
  const holds = (HOLDS_FOR[command] ?? HOLDS[group] ?? []).map((line) => line.split(' '));
  const data = [INSIDE, OUTSIDE].flatMap((prefix) =>
    holds.map((line) => line.map((word, i) => (i > 0 && /^k2?$/.test(word) ? `${prefix}${word}` : word))),
  );
  const calls = WRAPPED[way](args);
  const all: Command[] = [['AUTH', 'default', 'any'], ['FLUSHALL'], ...data, ['AUTH', USER, PASSWORD], ...calls];
  return Promise.all(
    servers.map(async (server) => {
      const replies = (await server.ask(all)).slice(-calls.length - 1);
      if (isError(replies[0])) throw new Error(`the user cannot log in: ${text(replies[0])}`);
      // After a command that blocked, KeyDB reads on only when more bytes arrive.
      if (!KEEPS_CONNECTION.has(group) || args.includes('block')) server.reopen();
      return doneOf(replies.slice(1));
    }),
  );
}

const REFUSED =
  /NOPERM|ACL failure|insufficient ACL|DEBUG command not allowed|user executing the script can't|user has no permissions/;
const UNKNOWN = /unknown (sub)?command|Unknown Redis command/i;

function doneOf(replies: readonly Reply[]): CallResult {
  const last = replies.at(-1)!;
  const errors = [...replies, ...(replies.length > 1 ? (last.items ?? []) : [])].filter(isError).map(text);
  if (errors.some((each) => REFUSED.test(each))) return 'refused';
  if (errors.some((each) => UNKNOWN.test(each))) return 'unknown';
  return errors.length > 0 ? 'failed' : 'done';
}

type Smallest = ReturnType<typeof smallest>;

/** Leaves out a call that contains the words of an earlier one. */
const withoutLonger = (found: Smallest): Smallest =>
  found.filter(
    ({ probe }, i) => !found.slice(0, i).some(({ words }) => words.every((word) => probe.words.includes(word))),
  );

/**
 * Calls that one server refuses and the other executes. The target must check the names even if the source lacks the
 * command, because a script may call it.
 */
function wider(seen: readonly ComparedCall[], stricter: 'source' | 'target', laxer: 'source' | 'target'): Outcome[] {
  return seen.map((each) => {
    const isWider =
      each[laxer] === 'done' &&
      (each[stricter] === 'refused' || (laxer === 'target' && each[stricter] === 'unknown' && !each.isInside));
    return {
      probe: each.probe,
      problem: isWider ? each.args.join(' ') : null,
      isFine: each[stricter] === 'done' && each[laxer] === 'done',
    };
  });
}

/** The text of the generated file. */
export function renderRights({ rights, versions: [source, target] }: ProbedRights): string {
  const rows = rights.map((row) => `  [${row.map((value) => `'${value}'`).join(', ')}],`);
  return `/**
 * Generated by generate-rights.ts from what Redis ${source} (the source) and KeyDB ${target} (the target) let a user do whose
 * patterns are \`~in:*\` and \`&in:*\`. Do not edit.
 *
 * A row: command, the server that carries it out although the other refuses it, the words that make the difference
 * (none: the command as such), in which ways it is sent, and the call.
 */
import type { GeneratedRight } from './generated-rows.js';

export const RIGHTS: readonly GeneratedRight[] = [
${rows.join('\n')}
];
`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [sourceUrl, targetUrl, file] = process.argv.slice(2);
  const probed = await probeRights(sourceUrl, targetUrl);
  writeFileSync(file, renderRights(probed));
  process.stdout.write(
    `${probed.rights.length} rights of ${probed.calls} calls of ${probed.checked.length} commands\n`,
  );
}
