/**
 * Reads the YAML of a plan: one document, as a value; or its problems, in an operator's words. The parser's own errors
 * mention aliases and tags, although the operator only forgot quotes.
 */
import {
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Alias,
  type Document,
  type Node,
  type Pair,
} from 'yaml';
import { PlanError, type PlanProblem } from './errors.js';

export interface Yaml {
  readonly document: Document;
  readonly lines: LineCounter;
  readonly value: unknown;
}

/** Maximum depth of nesting; a plan needs 6. */
const MAX_DEPTH = 64;
const TOO_DEEP = 'is nested too deeply: close the brackets that are open';
const MULTIPLIES = 'has aliases that multiply, or that stand for themselves: write the values out';

/** @throws {PlanError} with every problem, each with its line and column */
export function readYaml(file: string, text: string): Yaml {
  const lines = new LineCounter();
  const refuse = (found: readonly { readonly message: string; readonly offset: number }[]): never => {
    const problems = found.map(({ message, offset }): PlanProblem => {
      const { line, col } = lines.linePos(offset);
      // An empty file has no lines.
      return { path: [], message, line: Math.max(1, line), column: Math.max(1, col) };
    });
    throw new PlanError(file, problems);
  };
  try {
    const document = parseDocument(text, { lineCounter: lines, logLevel: 'error', version: '1.2', merge: false });
    const [broken] = document.errors;
    if (broken) return refuse([{ message: explain(broken.code, broken.message), offset: broken.pos[0] }]);
    const found = [...tagsIn(document), ...aliasesIn(document), ...tooDeep(document)];
    return found.length > 0 ? refuse(found) : { document, lines, value: document.toJS() };
  } catch (error) {
    if (error instanceof PlanError) throw error;
    // The parser is recursive. It also refuses aliases that multiply.
    return refuse([{ message: error instanceof RangeError ? TOO_DEEP : MULTIPLIES, offset: 0 }]);
  }
}

function explain(code: string, message: string): string {
  if (code === 'MULTIPLE_DOCS') return 'has a second document here: a plan is one document, without a line --- in it';
  if (code === 'BAD_ALIAS') return unquoted('*');
  if (/call stack/.test(message)) return TOO_DEEP;
  const [first] = message.split(/ at line \d+/);
  const quote = /alias|reserved character/.test(first)
    ? ': quote a value that begins with *, [, {, @ or a backtick'
    : '';
  return `is not valid YAML: ${first}${quote}`;
}

/** The problem of a text that begins with a special character of YAML. */
const unquoted = (word: string): string =>
  `has ${word} without quotes, which YAML reads as an alias: quote a pattern that begins with *, such as "${word === '*' ? '*:session' : word}"`;

interface YamlProblem {
  readonly message: string;
  readonly offset: number;
}

/** Tags such as `!text`, which no field of a plan accepts. */
const tagsIn = ({ warnings }: Document): YamlProblem[] =>
  warnings.map(({ code, message, pos }) => ({
    message:
      code === 'TAG_RESOLVE_FAILED'
        ? 'has a tag, a word that begins with !: no field takes one; quote a pattern that begins with !'
        : `is not valid YAML: ${message.split(/ at line \d+/)[0]}`,
    offset: pos[0],
  }));

/** Aliases without an anchor: the operator meant a pattern. */
function aliasesIn(document: Document): YamlProblem[] {
  const found: YamlProblem[] = [];
  const anchors = new Set<string>();
  visit(document, {
    Node(_, node: Node) {
      const { anchor } = node as { readonly anchor?: string };
      if (anchor !== undefined) anchors.add(anchor);
    },
    Alias(_, { source, range }: Alias) {
      if (!anchors.has(source)) found.push({ message: unquoted(`*${source}`), offset: range?.[0] ?? 0 });
    },
  });
  return found;
}

function tooDeep({ contents }: Document): YamlProblem[] {
  const offsetOf = (node: unknown): number => (node as Node | null)?.range?.[0] ?? 0;
  const pending: { node: unknown; depth: number }[] = [{ node: contents, depth: 0 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { node, depth } = next;
    if (depth > MAX_DEPTH) return [{ message: TOO_DEEP, offset: offsetOf(node) }];
    const below = isMap(node)
      ? node.items.flatMap(({ key, value }: Pair) => [key, value])
      : isSeq(node)
        ? node.items
        : [];
    for (const each of below) if (!isScalar(each)) pending.push({ node: each, depth: depth + 1 });
  }
  return [];
}
