/**
 * A runbook is a page of Markdown that people read and the engine runs: its steps are fenced blocks.
 *
 *   ```yaml step
 *   id: dualwrite                       # of its own in the page: small letters, digits, -
 *   each: all                           # once for each workload of the plan, or for those of [class, …], or named with --workload
 *   run: npx --no-install shadow-compare promote "$WORKLOAD" --to dualwrite --plan "$PLAN"
 *   expect: { exit: 0, output: "off → dualwrite, done", json: { "$[*].to.stage": dualwrite } }
 *   changes: writes go to both servers  # absent: the step changes nothing
 *   # An irreversible step is confirmed with the migration's name, which its command has in $MIGRATION.
 *   undo: npx --no-install shadow-compare rollback "$WORKLOAD" --plan "$PLAN"      # or irreversible: why, and what to do instead
 *   once: true                          # what it expects holds only at its place: `--check` leaves it out later
 *   ```
 *   ```text output
 *   what the step before it printed
 *   ```
 *
 * Room: runbook: runbooks: parse a page, run its steps, keep the place.
 * Called by: cli.
 * Calls: text, plan.
 */
import { jsonpath } from 'json-p3';
import { Lexer, type Token, type Tokens } from 'marked';
import { parseDocument } from 'yaml';
import * as z from 'zod';
import { WORKLOAD_CLASSES } from '../plan/plan.js';

const pattern = z.string().refine((text) => compiles(text), { message: 'is not a regular expression' });
const json = z
  .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
  .superRefine((wanted, context) => {
    for (const path of Object.keys(wanted))
      if (!isPath(path)) context.addIssue({ code: 'custom', path: [path], message: 'is not a JSONPath (RFC 9535)' });
  });

const stepSchema = z
  .strictObject({
    id: z.string().regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'only small letters, digits and - are allowed'),
    each: z.union([z.literal('all'), z.literal('named'), z.array(z.enum(WORKLOAD_CLASSES)).min(1)]).optional(),
    run: z.string().trim().min(1),
    expect: z.strictObject({
      /** The allowed exit codes of the command. */
      exit: z.union([z.int().min(0).max(255), z.array(z.int().min(0).max(255)).min(1)]).default(0),
      /**
       * Regular expressions, each of which must match the output. White space and the lines of tables count as one
       * space.
       */
      output: z.union([pattern, z.array(pattern).min(1)]).default([]),
      /**
       * JSONPath (RFC 9535) in its standard output, and the expected value: at least one value is found, and each is
       * equal to it.
       */
      json: json.default({}),
    }),
    changes: z.string().optional(),
    undo: z.string().optional(),
    irreversible: z.string().optional(),
    once: z.boolean().default(false),
  })
  .superRefine(({ changes, undo, irreversible }, context) => {
    const ways = [undo, irreversible].filter((way) => way !== undefined).length;
    if (changes !== undefined && ways !== 1)
      context.addIssue({
        code: 'custom',
        path: ['undo'],
        message: 'a step with changes needs undo, or irreversible with the reason and what to do instead',
      });
    if (changes === undefined && ways > 0)
      context.addIssue({
        code: 'custom',
        path: ['changes'],
        message: 'a step with undo or irreversible needs changes',
      });
  });

export type Step = Readonly<z.infer<typeof stepSchema>> & {
  readonly line: number;
  /** The output when the page was written; null if the page does not show it. */
  readonly sample: string | null;
};
export type Expectation = Step['expect'];

export interface Runbook {
  /** The file's name without `.md`. */
  readonly name: string;
  readonly title: string;
  readonly steps: readonly Step[];
}

/** A page cannot be run. Each line of the message names the place and what is allowed. */
export class RunbookError extends Error {
  override readonly name = 'RunbookError';
}

const STEP = 'yaml step';
const SAMPLE = 'text output';

/** @throws {RunbookError} that lists all problems of the page */
export function parseRunbook(name: string, markdown: string): Runbook {
  const problems: string[] = [];
  const say = (line: number, what: string): void => void problems.push(`${name}.md:${line}: ${what}`);
  const steps: Step[] = [];
  let title: string | null = null;
  let line = 1;
  for (const token of Lexer.lex(markdown)) {
    if (token.type === 'heading') title ??= (token as Tokens.Heading).text;
    if (token.type !== 'code') checkNested(token, line, say);
    else takeFence(token as Tokens.Code, line, steps, say);
    line += token.raw.split('\n').length - 1;
  }
  for (const [at, { id, line: here }] of steps.entries()) {
    const first = steps.findIndex((step) => step.id === id);
    if (first !== at) say(here, `id ${id} is used in line ${steps[first].line} already: each step needs its own id`);
  }
  if (problems.length > 0) throw new RunbookError(problems.join('\n'));
  return { name, title: title ?? name, steps };
}

type AddProblem = (line: number, what: string) => void;

function takeFence({ lang = '', text }: Tokens.Code, line: number, steps: Step[], say: AddProblem): void {
  if (lang === SAMPLE) {
    const last = steps.at(-1);
    if (last === undefined) say(line, `\`${SAMPLE}\` must follow a step, and there is none before it`);
    else steps[steps.length - 1] = { ...last, sample: text };
  } else if (lang === STEP) {
    const step = readStep(text, line, say);
    if (step !== null) steps.push(step);
  } else if (/^(yaml|text) \S/.test(lang)) {
    say(line, `unknown fence \`${lang}\`: allowed are \`${STEP}\` and \`${SAMPLE}\``);
  }
}

function readStep(text: string, line: number, say: AddProblem): Step | null {
  const document = parseDocument(text);
  for (const { message, linePos } of document.errors) say(line + (linePos?.[0].line ?? 1), message.split('\n')[0]);
  if (document.errors.length > 0) return null;
  const { success, data, error } = stepSchema.safeParse(document.toJS());
  if (success) return { ...data, line, sample: null };
  for (const { path, message } of error.issues) say(line, `${path.join('.') || 'the step'}: ${message}`);
  return null;
}

/** Reports a step inside a list or a quotation, which would not be found. */
function checkNested(token: Token, line: number, say: AddProblem): void {
  const inside = [
    ...(('tokens' in token && token.tokens) || []),
    ...(('items' in token && (token.items as Token[])) || []),
  ];
  for (const each of inside) {
    if (each.type === 'code' && [STEP, SAMPLE].includes((each as Tokens.Code).lang ?? ''))
      say(line, 'a step must not be inside a list or a quotation');
    checkNested(each, line, say);
  }
}

const compiles = (text: string): boolean => succeeds(() => new RegExp(text));
const isPath = (text: string): boolean => succeeds(() => jsonpath.compile(text));

function succeeds(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}
