/**
 * Calls of each form that a command's documentation lists: the arguments of `COMMAND DOCS` with concrete values. The
 * shortest call comes first, then each option and each alternative alone, then each two of them together.
 */
import { text, type Reply } from '../resp/decode.js';

/** One argument of a command, as `COMMAND DOCS` describes it. */
export interface DocArgument {
  readonly name: string;
  /** `key`, `string`, `integer`, `double`, `pattern`, `unix-time`, `pure-token`, `oneof`, `block`. */
  readonly type: string;
  readonly token: string | null;
  readonly optional: boolean;
  readonly multiple: boolean;
  /** Whether the token is repeated if the argument is given several times. */
  readonly repeatsToken: boolean;
  readonly arguments: readonly DocArgument[];
}

export interface CommandDoc {
  /** The name as in the table: `set`, `xgroup|create`. */
  readonly name: string;
  readonly group: string;
  readonly arguments: readonly DocArgument[];
}

/** One call. */
export interface Call {
  /** The arguments to send, with tokens in lower case. */
  readonly args: readonly string[];
  /** Its tokens in upper case; optional positional arguments as `<name>`, repeated ones as `<name>...`. */
  readonly words: readonly string[];
  /** Number of options and alternatives beyond the shortest call. */
  readonly cost: number;
}

/** Maximum number of options and alternatives in one call. */
const MOST = 2;
const NONE: Call = { args: [], words: [], cost: 0 };

/** The commands and subcommands in a server's reply to `COMMAND DOCS` over RESP2; without containers. */
export function commandDocs(reply: Reply): CommandDoc[] {
  return pairs(reply).flatMap(([name, doc]) => docsOf(name, doc));
}

function docsOf(name: string, reply: Reply): CommandDoc[] {
  const fields = new Map(pairs(reply));
  const subcommands = fields.get('subcommands');
  if (subcommands !== undefined) return pairs(subcommands).flatMap(([each, doc]) => docsOf(each, doc));
  return [{ name: name.toLowerCase(), group: text(fields.get('group')!), arguments: argumentsIn(fields) }];
}

const argumentsIn = (fields: ReadonlyMap<string, Reply>): DocArgument[] =>
  (fields.get('arguments')?.items ?? []).map(argumentOf);

function argumentOf(reply: Reply): DocArgument {
  const fields = new Map(pairs(reply));
  const flags = new Set((fields.get('flags')?.items ?? []).map(text));
  return {
    name: text(fields.get('name')!),
    type: text(fields.get('type')!),
    token: fields.has('token') ? text(fields.get('token')!).toUpperCase() : null,
    optional: flags.has('optional'),
    multiple: flags.has('multiple'),
    repeatsToken: flags.has('multiple_token'),
    arguments: argumentsIn(fields),
  };
}

function pairs({ items }: Reply): [string, Reply][] {
  const found: [string, Reply][] = [];
  for (let i = 0; i + 1 < (items?.length ?? 0); i += 2) found.push([text(items![i]), items![i + 1]]);
  return found;
}

type ValueOf = (argument: DocArgument) => string;

/**
 * All calls of a command, the shortest first.
 * @param valueOf returns the value of an argument that is no token
 */
export function callsOf({ name, arguments: args }: CommandDoc, valueOf: ValueOf): Call[] {
  const own = name.split('|').map((word) => word.toUpperCase());
  const calls = sequence(args, valueOf).sort((a, b) => a.cost - b.cost);
  return calls.map((call) => ({ ...call, args: [...own, ...call.args] }));
}

const sequence = (args: readonly DocArgument[], valueOf: ValueOf): Call[] =>
  args.reduce<Call[]>(
    (before, argument) => {
      const parts = partsOf(argument, valueOf);
      return before.flatMap((a) => parts.filter(({ cost }) => a.cost + cost <= MOST).map((b) => joined(a, b)));
    },
    [NONE],
  );

/** The possibilities for an argument; nothing is one of them if it is optional. */
function partsOf(argument: DocArgument, valueOf: ValueOf): Call[] {
  const { name, type, token, optional, multiple, repeatsToken } = argument;
  const bare = valuesOf(argument, valueOf);
  const once =
    token === null ? bare : bare.map((part) => joined({ args: [token.toLowerCase()], words: [token], cost: 0 }, part));
  const given = [...once];
  if (multiple) {
    for (const part of once.filter(({ cost }) => cost === 0)) {
      const twice = joined(part, (repeatsToken ? once : bare)[0]);
      given.push({ ...twice, words: [...part.words, `<${name}>...`], cost: 1 });
    }
  }
  if (!optional) return given;
  const named = (part: Call): Call => (part.words.length > 0 ? part : { ...part, words: [`<${name}>`] });
  // The alternative that an option takes, and what must follow it, does not count as a second choice.
  const isOne = type === 'oneof' || type === 'block';
  return [NONE, ...given.map((part) => ({ ...named(part), cost: isOne ? Math.max(1, part.cost) : part.cost + 1 }))];
}

/** The argument itself, once, without its token. */
function valuesOf(argument: DocArgument, valueOf: ValueOf): Call[] {
  const { type, arguments: inner } = argument;
  if (type === 'pure-token') return [NONE];
  if (type === 'block') return sequence(inner, valueOf);
  if (type !== 'oneof') return [{ ...NONE, args: [valueOf(argument)] }];
  return inner.flatMap((each, i) =>
    partsOf(each, valueOf).map((part) => ({
      ...part,
      words: part.words.length > 0 || i === 0 ? part.words : [`<${each.name}>`],
      cost: part.cost + Math.min(i, 1),
    })),
  );
}

const joined = (a: Call, b: Call): Call => ({
  args: [...a.args, ...b.args],
  words: [...a.words, ...b.words],
  cost: a.cost + b.cost,
});
