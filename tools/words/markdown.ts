/**
 * Checks Markdown with textlint and two rules of the project: the glossary's words, and the length of sentences.
 *
 * Prose is what stands in paragraphs, headings, list items and cells of tables. A piece of code counts as one word of
 * its sentence; its words are not checked, for they are the programs'. Of a runbook's steps (blocks of YAML) the line
 * `changes:` is checked, for people read it.
 */
import { TextlintKernel, type TextlintRuleModule } from '@textlint/kernel';
import markdown from '@textlint/textlint-plugin-markdown';
import { type Finding } from './finding.js';
import { type Refused } from './glossary.js';

/** Words of a sentence at most. */
export const LONGEST = 30;

interface Node {
  readonly type: string;
  readonly range: readonly [number, number];
  readonly children?: readonly Node[];
}

const BLOCKS = ['Paragraph', 'Header', 'TableCell'];
const CHANGES = /^changes: .*$/gm;
const SENTENCES = new Intl.Segmenter('en', { granularity: 'sentence' });

/** Checks the text of one file. */
export async function lintMarkdown(
  file: string,
  text: string,
  refused: (text: string) => Refused[],
): Promise<Finding[]> {
  const { messages } = await new TextlintKernel().lintText(text, {
    ext: '.md',
    filePath: file,
    plugins: [{ pluginId: 'markdown', plugin: markdown.default }],
    rules: [
      { ruleId: 'terms', rule: termsRule(refused) },
      { ruleId: 'sentences', rule: sentencesRule },
    ],
  });
  return messages.map(({ ruleId, line, message }) => ({ check: ruleId as Finding['check'], file, line, message }));
}

const termsRule =
  (refused: (text: string) => Refused[]): TextlintRuleModule =>
  ({ RuleError, Syntax, getSource, locator, report }) => {
    const check = (node: Node, text: string, from: number): void => {
      for (const { index, word, use } of refused(text))
        report(node as never, new RuleError(refusal(word, use), { padding: locator.at(from + index) }));
    };
    return {
      ...forBlocks((node) => check(node, proseOf(node, getSource(node as never)), 0)),
      [Syntax.CodeBlock]: (node: Node) => {
        for (const { 0: line, index } of getSource(node as never).matchAll(CHANGES)) check(node, line, index);
      },
    };
  };

const sentencesRule: TextlintRuleModule = ({ RuleError, getSource, locator, report }) =>
  forBlocks((node) => {
    for (const { segment, index } of SENTENCES.segment(proseOf(node, getSource(node as never)))) {
      const words = segment
        .split(/\s+/)
        .filter((word) => /[\p{L}\p{N}]/u.test(word))
        .filter((word, at, all) => !(isCode(word) && at > 0 && isCode(all[at - 1])));
      if (words.length <= LONGEST) continue;
      const message = `a sentence of ${words.length} words, at most ${LONGEST} are allowed: "${words.slice(0, 6).join(' ')} …"`;
      report(node as never, new RuleError(message, { padding: locator.at(index) }));
    }
  });

/** A list of code counts as one word. */
const isCode = (word: string): boolean => /^C+[,;:]?$/.test(word);

export const refusal = (word: string, use: string): string => `"${word}" is not a word of the glossary: write "${use}"`;

const forBlocks = (visit: (node: Node) => void): Record<string, (node: Node) => void> =>
  Object.fromEntries(BLOCKS.map((type) => [type, visit]));

/**
 * The text of a node, as long as its source, so that an index into one is an index into the other: a piece of code is
 * one word of capitals, markup and the ends of lines are blanks.
 */
function proseOf(node: Node, source: string): string {
  const [start] = node.range;
  const prose = Array.from({ length: source.length }, () => ' ');
  const copy = ({ type, range: [from, to], children = [] }: Node): void => {
    for (let at = from - start; at < to - start; at++) {
      if (type === 'Str') prose[at] = source[at] === '\n' ? ' ' : source[at];
      else if (type === 'Code') prose[at] = 'C';
    }
    children.forEach(copy);
  };
  copy(node);
  return prose.join('');
}
