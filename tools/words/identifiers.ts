/**
 * The names in code, checked against the glossary: identifiers that TypeScript, JavaScript and C declare, and the names
 * of files. A name is read as words: `answeredAt`, `ANSWERED_AT` and `answered-at.ts` are "answered at".
 *
 * TypeScript: only declarations, so that each name is reported where it is chosen; a use has the same name, or another
 * package's. C: every identifier, once, for a header of the system has none of these words.
 */
import { basename } from 'node:path';
import ts from 'typescript';
import { type Finding } from './finding.js';
import { type Refused } from './glossary.js';

/** A name and the index of its first character in the file. */
interface Name {
  readonly text: string;
  readonly at: number;
}

/** Comments, strings and lines of the preprocessor, which have no names of ours. */
const C_NO_NAMES = /\/\*[\s\S]*?\*\/|\/\/.*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^[ \t]*#[ \t]*include.*/gm;
const C_NAME = /\b[A-Za-z_]\w*/g;

/** Checks the names that one file of TypeScript, JavaScript or C declares. @param source the text of the file */
export function lintIdentifiers(file: string, source: string, refused: (text: string) => Refused[]): Finding[] {
  const names = /\.[ch]$/.test(file) ? namesOfC(source) : declaredIn(file, source);
  return names.flatMap(({ text, at }) => {
    const line = (): number => source.slice(0, at).split('\n').length;
    return findingsOf(file, text, line, refused);
  });
}

/** Checks the name of a file without its extensions; the finding is in line 1. */
export const lintFileName = (file: string, refused: (text: string) => Refused[]): Finding[] =>
  findingsOf(file, basename(file).replace(/\..*$/, ''), () => 1, refused);

/** The words of a name, in lower case: at capitals, underscores and hyphens. */
export const wordsOf = (name: string): string =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .replaceAll(/[#$_-]+/g, ' ')
    .trim()
    .toLowerCase();

const findingsOf = (file: string, name: string, line: () => number, refused: (text: string) => Refused[]): Finding[] =>
  refused(wordsOf(name)).map(({ word, use }) => ({
    check: 'terms',
    file,
    line: line(),
    message: `"${name}" has "${word}", which is not a word of the glossary: write "${use}"`,
  }));

/** Each name that the file gives to something: what it imports under its own name is left out. */
function declaredIn(file: string, source: string): Name[] {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.ES2022, true);
  const names: Name[] = [];
  const visit = (node: ts.Node): void => {
    if ((ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) && isDeclared(node))
      names.push({ text: node.text, at: node.getStart(tree) });
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return names;
}

function isDeclared(node: ts.Identifier | ts.PrivateIdentifier): boolean {
  const { parent } = node;
  if (!('name' in parent) || parent.name !== node || ts.isPropertyAccessExpression(parent)) return false;
  return !(ts.isImportSpecifier(parent) || ts.isExportSpecifier(parent)) || parent.propertyName !== undefined;
}

function namesOfC(source: string): Name[] {
  const code = source.replace(C_NO_NAMES, (text) => text.replaceAll(/[^\n]/g, ' '));
  const names = new Map<string, number>();
  for (const { 0: text, index } of code.matchAll(C_NAME)) if (!names.has(text)) names.set(text, index);
  return [...names].map(([text, at]) => ({ text, at }));
}
