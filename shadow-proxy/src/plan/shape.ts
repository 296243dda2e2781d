/**
 * Turns zod's issues about a wrong shape into problems that name the value, what is allowed, and the likely mistake.
 */
import type { z } from 'zod';
import { closest, type PlanPath, type PlanProblem } from './errors.js';
import { redactUrl } from './endpoint.js';
import { planJsonSchema } from './schema.js';

/** Fields that are lists of patterns. */
const PATTERNS = new Set(['keys', 'channels', 'owns']);

type Issue = z.core.$ZodIssue;
interface JsonNode {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, JsonNode>>;
  readonly items?: JsonNode;
  readonly anyOf?: readonly JsonNode[];
}

export function shapeProblems(issues: readonly Issue[], value: unknown): PlanProblem[] {
  const root = planJsonSchema() as JsonNode;
  return issues.flatMap((issue) => problemsOf(issue, [], value, root));
}

function problemsOf(issue: Issue, base: PlanPath, root: unknown, schema: JsonNode): PlanProblem[] {
  const path = [...base, ...(issue.path as (string | number)[])];
  const value = at(root, path);
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = Object.keys(nodeAt(schema, path)?.properties ?? {});
      return issue.keys.map((key) => ({ path: [...path, key], message: unknownKey(key, known), atKey: true }));
    }
    case 'invalid_union': {
      // The branch for the value's own type explains more than "none of them fits".
      const branch = issue.errors.find(
        (errors) => !errors.some((e) => e.path.length === 0 && e.code === 'invalid_type'),
      );
      // If the branch allows one word only, and the value is another word, the message also names what the other
      // branches allow.
      const isWord = branch?.some((e) => e.path.length === 0 && e.code === 'invalid_value');
      const words = isWord ? nodeAt(schema, path)?.anyOf?.map(describe) : undefined;
      if (words) return [{ path, message: `is ${show(path, value)}: ${or(words)} is allowed` }];
      if (branch) return branch.flatMap((inner) => problemsOf(inner, path, root, schema));
      const expected = issue.errors
        .flat()
        .map((inner) => (inner.code === 'invalid_type' ? a(inner.expected) : inner.message));
      return [
        {
          path,
          message:
            value === undefined ? `is missing: ${or(expected)}` : `is ${show(path, value)}: ${or(expected)} is allowed`,
        },
      ];
    }
    default:
      if (path.length === 0)
        return [{ path, message: `is ${show(path, value)}: a plan is a mapping that begins with "version: 1"` }];
      if (value === undefined) return [{ path, message: `is missing: ${allowed(issue)}` }];
      return [{ path, message: `is ${show(path, value)}: ${allowed(issue)} is allowed${slip(issue, path, value)}` }];
  }
}

function allowed(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return a(issue.expected);
    case 'invalid_value':
      return or(issue.values.map(String));
    case 'too_small':
      return issue.origin === 'number'
        ? `a number from ${issue.minimum}`
        : issue.origin === 'array'
          ? 'at least one entry'
          : 'at least one character';
    case 'too_big':
      return `a number up to ${issue.maximum}`;
    default:
      return issue.message;
  }
}

const YAML_WORDS: Readonly<Record<string, string>> = {
  int: 'a whole number',
  array: 'a list',
  object: 'a mapping',
  record: 'a mapping',
  boolean: 'true or false',
};
const a = (type: string): string => YAML_WORDS[type] ?? `a ${type}`;

/** What a branch of a union allows, from the JSON Schema. */
function describe({ type = 'value', const: only, enum: words, minimum, maximum }: JsonNode): string {
  if (only !== undefined) return String(only);
  if (words !== undefined) return or(words.map(String));
  const kind = a(type === 'integer' ? 'int' : type);
  return minimum === undefined || maximum === undefined ? kind : `${kind} from ${minimum} to ${maximum}`;
}

const or = (words: readonly string[]): string => words.join(', ').replace(/, ([^,]*)$/, ' or $1');

function slip(issue: Issue, path: PlanPath, value: unknown): string {
  // YAML reads such a pattern as a list if it begins with a bracket, or as a number.
  if (issue.code === 'invalid_type' && PATTERNS.has(String(path.at(-2)))) return '; write the pattern in quotes';
  if (issue.code !== 'invalid_value') return '';
  // YAML 1.1 reads a bare `off` as false.
  if (value === false && issue.values.includes('off')) return '; write "off" in quotes';
  if (typeof value !== 'string') return '';
  const likely = closest(value, issue.values.map(String));
  return likely ? `; did you mean ${likely}?` : '';
}

function unknownKey(key: string, known: readonly string[]): string {
  const likely = closest(key, known);
  return `is not known here: ${likely ? `did you mean ${likely}?` : `${or(known)} ${known.length === 1 ? 'is' : 'are'} allowed`}`;
}

/** The value for people: short, and without secrets. */
export function show(path: PlanPath, value: unknown): string {
  if (value === null) return 'empty';
  if (/^(token|password)$/i.test(String(path.at(-1)))) return '(not shown)';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object') return 'a mapping';
  const text = redactUrl(JSON.stringify(value));
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

function at(value: unknown, path: PlanPath): unknown {
  return path.reduce<unknown>(
    (node, part) => (node as Record<string | number, unknown> | null | undefined)?.[part],
    value,
  );
}

function nodeAt(schema: JsonNode, path: PlanPath): JsonNode | undefined {
  const object = (node: JsonNode | undefined): JsonNode | undefined =>
    node?.anyOf?.find((option) => option.properties) ?? node;
  return path.reduce<JsonNode | undefined>(
    (node, part) => object(typeof part === 'number' ? node?.items : node?.properties?.[part]),
    object(schema),
  );
}
