/**
 * The texts in code that people read (messages, titles, help texts, descriptions), checked against the glossary.
 *
 * TypeScript: comments, string and template literals, and the text of JSX. What is no text is left out: paths of
 * imports, types, keys, values that are compared with, code in comments, and literals of a single word, which are
 * mostly names of states and fields. YAML: values of `summary` and `description`. Terraform: `description` and
 * `error_message`.
 */
import ts from 'typescript';
import { type Finding } from './finding.js';
import { type Refused } from './glossary.js';
import { refusal } from './markdown.js';

/** A text and where it begins in its file. */
interface Message {
  readonly text: string;
  readonly at: number;
}

const TESTS = /^(test|describe|it|t\.test)$/;
const YAML_TEXTS = /^\s*(?:summary|description): .*$/gm;
const TERRAFORM_TEXTS = /^\s*(?:description|error_message)\s*=.*$/gm;

/** Checks the messages of one file of code. */
export const lintMessages = (file: string, source: string, refused: (text: string) => Refused[]): Finding[] =>
  lint(file, source, messagesOf(file, source), refused);

/** Checks the comments of one file of TypeScript. */
export const lintComments = (file: string, source: string, refused: (text: string) => Refused[]): Finding[] =>
  lint(file, source, commentsOf(treeOf(file, source)), refused);

/** Checks the titles of the tests in one file of TypeScript. */
export const lintTitles = (file: string, source: string, refused: (text: string) => Refused[]): Finding[] =>
  lint(file, source, titlesOf(treeOf(file, source)), refused);

const treeOf = (file: string, source: string): ts.SourceFile =>
  ts.createSourceFile(file, source, ts.ScriptTarget.ES2022, true);

function lint(
  file: string,
  source: string,
  messages: readonly Message[],
  refused: (text: string) => Refused[],
): Finding[] {
  return messages.flatMap(({ text, at }) =>
    refused(text).map(({ index, word, use }) => ({
      check: 'terms' as const,
      file,
      line: source.slice(0, at + index).split('\n').length,
      message: refusal(word, use),
    })),
  );
}

function messagesOf(file: string, source: string): Message[] {
  if (/\.tsx?$/.test(file)) return literalsOf(treeOf(file, source)).filter(({ text }) => /\S\s+\S/.test(text));
  const pattern = file.endsWith('.tf') ? TERRAFORM_TEXTS : YAML_TEXTS;
  return [...source.matchAll(pattern)].map(({ 0: text, index }) => ({ text, at: index }));
}

/** Each comment once; its code, and the stars that begin its lines, are blanks. */
function commentsOf(tree: ts.SourceFile): Message[] {
  const source = tree.text;
  const comments = new Map<number, ts.CommentRange>();
  const visit = (node: ts.Node): void => {
    if (ts.isJsxText(node)) return;
    const ranges = [
      ...(ts.getLeadingCommentRanges(source, node.getFullStart()) ?? []),
      ...(ts.getTrailingCommentRanges(source, node.getEnd()) ?? []),
    ];
    for (const range of ranges) comments.set(range.pos, range);
    node.getChildren(tree).forEach(visit);
  };
  visit(tree);
  return [...comments.values()].map(({ pos, end }) => ({
    text: source.slice(pos, end).replace(/`[^`]*`|^[ \t]*\*/gm, (blank) => ' '.repeat(blank.length)),
    at: pos,
  }));
}

/** The literals of the first argument of `test`, `describe` and their like. */
function titlesOf(tree: ts.SourceFile): Message[] {
  const titles: Message[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && TESTS.test(node.expression.getText(tree)) && node.arguments.length > 0)
      titles.push(...textsIn(tree, node.arguments[0]));
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return titles;
}

const literalsOf = (tree: ts.SourceFile): Message[] => textsIn(tree, tree);

function textsIn(tree: ts.SourceFile, within: ts.Node): Message[] {
  const messages: Message[] = [];
  const visit = (node: ts.Node): void => {
    // The source of a literal, not its value, so that an index into it is a place in the file.
    if (isText(node) && !isName(node)) messages.push({ text: node.getText(tree), at: node.getStart(tree) });
    ts.forEachChild(node, visit);
  };
  visit(within);
  return messages;
}

const isText = (node: ts.Node): boolean =>
  ts.isStringLiteralLike(node) ||
  ts.isJsxText(node) ||
  ts.isTemplateHead(node) ||
  ts.isTemplateMiddleOrTemplateTail(node);

/** Whether a literal names something for the program: a path, a type, a key, a value to compare with. */
function isName(node: ts.Node): boolean {
  const { parent } = node;
  if (ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent) || ts.isLiteralTypeNode(parent)) return true;
  if (ts.isElementAccessExpression(parent) || ts.isCaseClause(parent)) return true;
  if (ts.isPropertyAssignment(parent) || ts.isPropertySignature(parent)) return parent.name === node;
  return (
    ts.isBinaryExpression(parent) &&
    [ts.SyntaxKind.EqualsEqualsEqualsToken, ts.SyntaxKind.ExclamationEqualsEqualsToken].includes(
      parent.operatorToken.kind,
    )
  );
}
