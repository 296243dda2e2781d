/**
 * Writes `forms.generated.ts` from the answers of two running servers:
 *
 *   node dist/shadow-proxy/src/command/generate-forms.js redis://127.0.0.1:6379 redis://127.0.0.1:6390 \
 *     shadow-proxy/src/command/forms.generated.ts
 *
 * The first is a Redis 7, whose `COMMAND DOCS` lists commands, options and alternatives; the second is a KeyDB. **All
 * keys, scripts and functions of both are deleted.** Each call is sent to both, with keys that hold data and with keys
 * that do not exist. A call is a form that one server does not support if only the other one accepts it, or if the
 * structure of the replies differs. The same two servers always give the same file.
 */
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { isError, text, type Reply } from '../resp/decode.js';
import { commandDocs } from './docs-calls.js';
import { DUMP, MORE, UPPER, probesOf, tokensOfStrings, type Probe } from './form-calls.js';
import { Prober } from './form-prober.js';
import type { GeneratedForm } from './generated-rows.js';

/** The answers of both servers. */
export interface Probed {
  readonly forms: readonly GeneratedForm[];
  /** Number of calls that were sent to each server, with keys and without. */
  readonly calls: number;
  /** Commands of which neither server accepted any call: nothing is known about them. */
  readonly silent: readonly string[];
  readonly versions: readonly [source: string, target: string];
}

/**
 * Not sent: these commands end or reconfigure a server, take over a connection, or need a cluster or a second server.
 * The proxy refuses them or answers them itself (policy.ts).
 */
export const NOT_PROBED = new RegExp(
  `^(${[
    'cluster\\|.*|module\\|.*|shutdown|debug|monitor|sync|psync|replconf|replicaof|slaveof|failover|migrate|quit|reset',
    'save|bgsave|bgrewriteaof|pfselftest|readonly|readwrite|asking|restore-asking|client\\|(kill|pause|unpause|reply)|acl\\|(load|save)|config\\|rewrite|.*\\|help',
  ].join('|')})$`,
);

/** Sends each form of each command to both servers. This deletes their data. */
export async function probeForms(sourceUrl: string, targetUrl: string): Promise<Probed> {
  const [source, target] = [new Prober(sourceUrl), new Prober(targetUrl)];
  try {
    const [docsReply] = await source.ask([['COMMAND', 'DOCS']]);
    const docs = commandDocs(docsReply).filter(({ name }) => !NOT_PROBED.test(name));
    const more = MORE.map(([command, group, words, call]): Probe => ({
      command,
      group,
      words,
      args: call.split(' '),
      cost: 0,
    }));
    const probes = [...docs.flatMap(probesOf), ...more];
    const seen = new Map<string, ProbedCall[]>();
    for (const command of new Set(probes.map((probe) => probe.command))) {
      const own = probes.filter((probe) => probe.command === command);
      const [ofSource, ofTarget] = await Promise.all([source.answers(own), target.answers(own)]);
      seen.set(
        command,
        own.map((probe, i) => ({ probe, source: ofSource[i], target: ofTarget[i] })),
      );
    }
    const strings = new Map(docs.map((doc) => [doc.name, [...tokensOfStrings(doc.arguments)]]));
    const names = [await namesOf(source), await namesOf(target)];
    const onlyTarget = [...names[1]].filter((name) => !names[0].has(name) && !HTTP.has(name));
    const forms = [...seen].flatMap(([command, calls]) => formsOf(command, calls, strings.get(command) ?? []));
    for (const name of onlyTarget)
      forms.push([name, 'source', 'refused', '', 0, name.toUpperCase(), 'unknown command']);
    const silent = [...seen].filter(([, calls]) =>
      calls.every((each) => each.source.every(isError) && each.target.every(isError)),
    );
    return {
      forms: forms.sort(byName),
      calls: probes.length,
      silent: silent.map(([command]) => command).sort(),
      versions: [await versionOf(source), await versionOf(target)],
    };
  } finally {
    source.close();
    target.close();
  }
}

/** KeyDB lists these words of HTTP, on which both servers close the connection. */
const HTTP = new Set(['post', 'host:']);

const byName = (a: GeneratedForm, b: GeneratedForm): number =>
  `${a[0]} ${a[3]} ${a[1]}` < `${b[0]} ${b[3]} ${b[1]}` ? -1 : 1;

async function namesOf(server: Prober): Promise<Set<string>> {
  const [reply] = await server.ask([['COMMAND']]);
  return new Set(reply.items!.map(({ items }) => text(items![0]).toLowerCase()));
}

export async function versionOf(server: Prober): Promise<string> {
  const [reply] = await server.ask([['INFO', 'server']]);
  return /^redis_version:(\S+)/m.exec(text(reply))![1];
}

// ── what it means ───────────────────────────────────────────────────────────────────────────────────────────────

/** One call and the answers of both servers, with keys and without. */
interface ProbedCall {
  readonly probe: Probe;
  readonly source: readonly Reply[];
  readonly target: readonly Reply[];
}

/** The outcome of one call at one server. */
export interface Outcome {
  readonly probe: Probe;
  /** The difference; null if there is none, or it cannot be determined. */
  readonly problem: string | null;
  /** Whether the server supports the call. */
  readonly isFine: boolean;
}

function formsOf(command: string, calls: readonly ProbedCall[], strings: readonly string[]): GeneratedForm[] {
  const row = (lacks: 'source' | 'target', how: 'refused' | 'reply', outcomes: readonly Outcome[]): GeneratedForm[] =>
    smallest(outcomes).map(({ words, probe, problem }): GeneratedForm => {
      const from = probe.args.findIndex((arg) => probe.words.includes(arg.toUpperCase()));
      const skip = words.some((word) => /^[A-Z]/.test(word)) ? strings : [];
      const example = probe.args.map((arg) => (/[\s']/.test(arg) || arg === DUMP ? '…' : arg)).join(' ');
      return [command, lacks, how, words.join(' '), from === -1 ? probe.args.length : from, example, problem!, ...skip];
    });
  const target = calls.map(({ probe, source: other, target: own }) => outcome(probe, own, refusalIn(own, other)));
  const source = calls.map(({ probe, source: own, target: other }) => outcome(probe, own, refusalIn(own, other)));
  const reply = calls.map((each) => outcome(each.probe, each.target, otherReply(each)));
  const refused = [...row('target', 'refused', target), ...row('source', 'refused', source)];
  // A refused call has no reply that could be compared.
  return refused.some(([, , , words]) => words === '') ? refused : [...refused, ...row('target', 'reply', reply)];
}

const outcome = (probe: Probe, own: readonly Reply[], problem: string | null): Outcome => ({
  probe,
  problem,
  isFine: problem === null && own.some((reply) => !isError(reply)),
});

/** The error of one server if the other one accepts the call. */
function refusalIn(own: readonly Reply[], other: readonly Reply[]): string | null {
  const at = own.findIndex((reply, i) => isError(reply) && !isError(other[i]));
  return at === -1
    ? null
    : text(own[at]).replace(/^ERR |(, with args beginning with|\. (Try|please)| for '| specified as| `).*$/g, '');
}

/** Commands whose replies show the server's own activity. */
const OF_THE_SERVER = /^(slowlog|latency)\|/;

function otherReply({ probe, source, target }: ProbedCall): string | null {
  if (OF_THE_SERVER.test(probe.command)) return null;
  const at = source.findIndex(
    (reply, i) => !isError(reply) && !isError(target[i]) && shapeOf(reply) !== shapeOf(target[i]),
  );
  return at === -1 ? null : 'other elements';
}

/** The structure of a reply: arrays of the same kind of element are alike, whatever their length. */
function shapeOf({ items, data, type }: Reply): string {
  if (items === null) return data === null ? 'null' : type === ':' ? 'number' : 'text';
  const each = items.map(shapeOf);
  return new Set(each).size === 1 ? `[${each[0]}...]` : `[${each.join(' ')}]`;
}

/** The smallest sets of words that cause the difference: every call that has all of them shows it. */
export function smallest(
  outcomes: readonly Outcome[],
): { words: readonly string[]; probe: Probe; problem: string | null }[] {
  const fine = outcomes.filter(({ isFine }) => isFine).map(({ probe }) => new Set(probe.words));
  const makes = (words: readonly string[]): boolean => !fine.some((has) => words.every((word) => has.has(word)));
  const found: { words: readonly string[]; probe: Probe; problem: string | null }[] = [];
  for (const { probe, problem } of outcomes.filter((each) => each.problem !== null)) {
    for (const words of subsets(probe.words)) {
      if (found.some((known) => known.words.every((word) => words.includes(word) || words.includes(`${word}${UPPER}`))))
        continue;
      if (makes(words)) found.push({ words, probe, problem });
    }
  }
  return found;
}

/** No word, each word, each two words. */
const subsets = (words: readonly string[]): string[][] => [
  [],
  ...words.map((word) => [word]),
  ...words.flatMap((a, i) => words.slice(i + 1).map((b) => [a, b])),
];

// ── the file ────────────────────────────────────────────────────────────────────────────────────────────────────

/** The text of the generated file. */
export function renderForms({ forms, versions: [source, target] }: Probed): string {
  const quoted = (value: string | number): string =>
    typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "\\'")}'`;
  const rows = forms.map((form) => `  [${form.map(quoted).join(', ')}],`);
  return `/**
 * Generated by generate-forms.ts from what Redis ${source} (the source) and KeyDB ${target} (the target) answer. Do not
 * edit.
 *
 * A row: command, who lacks it, how (\`refused\`, or a \`reply\` that is built otherwise), the words that make the form
 * (none: the command as such), the argument from which they may stand, the call that was sent, what the server said,
 * and the words behind which any text may stand.
 */
import type { GeneratedForm } from './generated-rows.js';

export const FORMS: readonly GeneratedForm[] = [
${rows.join('\n')}
];
`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [sourceUrl, targetUrl, file] = process.argv.slice(2);
  const probed = await probeForms(sourceUrl, targetUrl);
  writeFileSync(file, renderForms(probed));
  process.stdout.write(
    `${probed.forms.length} forms of ${probed.calls} calls; no call accepted by either server: ${probed.silent.join(', ')}\n`,
  );
}
