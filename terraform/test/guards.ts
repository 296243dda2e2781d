/**
 * What stops a wrong input (validations, pre- and postconditions, checks), and the runs of tests that expect it: read
 * from formatted files.
 */

export interface Guard {
  /** Under which a test expects it to fail, such as `var.plan_file`. */
  readonly address: string;
  readonly conditions: number;
}

export interface Run {
  /** The whole block. */
  readonly text: string;
  /** Addresses that it expects to fail, each once; of an instance, its resource. */
  readonly expects: readonly string[];
}

const BLOCK = /^(variable|resource|data|output|check) "([^"]+)"(?: "([^"]+)")? \{\n([\s\S]*?)^\}/gm;
const CONDITION =
  /(^ +(?:validation|precondition|postcondition|assert) \{\n\s+condition\s+= )([\s\S]*?)(?=\n\s+error_message)/gm;

export const guardsOf = (text: string): Guard[] =>
  [...text.matchAll(BLOCK)]
    .map(([, kind, type, name, body]) => ({
      address: addressOf(kind, type, name),
      conditions: [...body.matchAll(CONDITION)].length,
    }))
    .filter(({ conditions }) => conditions > 0);

export const runsOf = (text: string): Run[] =>
  [...text.matchAll(/^run "[^"]+" \{\n[\s\S]*?^\}\n?/gm)].map(([run]) => {
    const lists = [...run.matchAll(/expect_failures = \[(.*)\]/g)].map(([, list]) => list);
    return { text: run, expects: [...new Set(lists.flatMap((list) => list.replace(/\["[^"]*"\]/g, '').split(/, */)))] };
  });

/**
 * The text with one condition of each block that has several, the others always holding; one that would be an error
 * holds, too.
 */
export const withOnly = (index: number, text: string): string =>
  text.replace(BLOCK, (block: string) => {
    if ([...block.matchAll(CONDITION)].length < 2) return block;
    let at = 0;
    return block.replace(CONDITION, (whole: string, before: string, condition: string) =>
      at++ === index ? whole : `${before}can(${condition}) || true`,
    );
  });

function addressOf(kind: string, type: string, name: string): string {
  switch (kind) {
    case 'variable':
      return `var.${type}`;
    case 'resource':
      return `${type}.${name}`;
    case 'data':
      return `data.${type}.${name}`;
    default:
      return `${kind}.${type}`;
  }
}
