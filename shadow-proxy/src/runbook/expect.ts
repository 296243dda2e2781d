/** Whether a step did what its page expects. Pure. */
import { jsonpath } from 'json-p3';
import { quoted } from '../text/shell.js';
import type { Expectation } from './document.js';

/** The result of a command. */
export interface Outcome {
  /** Null if a signal ended the command, or it could not be started. */
  readonly exit: number | null;
  readonly stdout: string;
  /** Standard output and standard error, in the order of arrival. */
  readonly printed: string;
}

export type Variables = Readonly<Record<string, string>>;

/** The expectations that were not met, a sentence each; empty if all were. */
export function misses(
  expect: Expectation,
  { exit, stdout, printed }: Outcome,
  variables: Variables,
): readonly string[] {
  const codes = [expect.exit].flat();
  const found: string[] = [];
  if (exit === null) found.push('the command was killed, or could not be started');
  else if (!codes.includes(exit)) found.push(`exit code ${exit}, expected ${codes.join(' or ')}`);
  const text = flatten(printed);
  for (const pattern of [expect.output].flat()) {
    if (!new RegExp(fill(pattern, variables, escape)).test(text))
      found.push(`the output does not match /${fill(pattern, variables)}/`);
  }
  if (Object.keys(expect.json).length > 0) found.push(...missesIn(expect.json, stdout, variables));
  return found;
}

function missesIn(wanted: Expectation['json'], stdout: string, variables: Variables): readonly string[] {
  let value: unknown;
  try {
    value = JSON.parse(stdout);
  } catch {
    return ['the output is not JSON'];
  }
  return Object.entries(wanted).flatMap(([path, expected]) => {
    const query = fill(path, variables);
    const values = jsonpath.query(query, value as Parameters<typeof jsonpath.query>[1]).values();
    const right = typeof expected === 'string' ? fill(expected, variables) : expected;
    if (values.length > 0 && values.every((each) => each === right)) return [];
    return [
      `${query} is ${values.length === 0 ? 'missing' : values.map((each) => JSON.stringify(each)).join(', ')}, expected ${JSON.stringify(right)}`,
    ];
  });
}

/** Tables wrap if a number is longer, so their lines and all white space count as one space. */
export const flatten = (text: string): string => text.replace(/[\s─-╿]+/g, ' ').trim();

/** Replaces `$NAME` by the variable; if there is no such variable, it stays. */
const fill = (text: string, variables: Variables, as = (value: string): string => value): string =>
  text.replace(/\$([A-Z][A-Z_]*)/g, (all, name: string) =>
    Object.hasOwn(variables, name) ? as(variables[name]) : all,
  );

/** A command with the values of its variables, ready to be pasted into a shell. */
export const pasteable = (command: string, variables: Variables): string =>
  command.replace(/"\$([A-Z][A-Z_]*)"|\$([A-Z][A-Z_]*)/g, (all, inQuotes: string | undefined, bare: string) => {
    const name = inQuotes ?? bare;
    return Object.hasOwn(variables, name) ? quoted(variables[name]) : all;
  });

const escape = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
