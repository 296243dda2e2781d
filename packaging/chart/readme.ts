/** The table of the chart's values in its README, in the form of helm-docs: from values.yaml and its comments. */
import { isMap, isScalar, parseDocument, type Node, type Pair } from 'yaml';

const BEGIN = '<!-- values: made by npm run chart:golden -->';
const END = '<!-- end of the values -->';

interface Row {
  readonly key: string;
  readonly type: string;
  readonly value: string;
  readonly says: string;
}

/**
 * @param text of values.yaml: each value has a comment at the end of its line
 * @returns a table in Markdown, a row for each value; a mapping over several lines has a row for each of its own
 * @throws Error of a value without a comment
 */
export function tableOf(text: string): string {
  const { contents } = parseDocument(text);
  if (!isMap(contents)) throw new Error('values.yaml is no mapping');
  const lines = text.split('\n');
  const lineOf = ([offset]: readonly number[]): number => text.slice(0, offset).split('\n').length - 1;

  const rowsOf = (prefix: string, pairs: readonly Pair[]): Row[] =>
    pairs.flatMap((pair) => {
      const name = pair.key as Node & { readonly value: string };
      const key = `${prefix}${name.value}`;
      const value = pair.value as Node;
      if (isMap(value) && value.flow !== true) return rowsOf(`${key}.`, value.items as Pair[]);
      const line = lines[lineOf(name.range!)];
      const [, says] = / # (.*)$/.exec(line) ?? commentAbove(key) ?? [];
      if (says === undefined) throw new Error(`values.yaml says nothing of ${key}`);
      return [{ key, type: typeOf(value), value: JSON.stringify(value.toJSON()), says }];
    });
  const commentAbove = (key: string): RegExpExecArray | null =>
    new RegExp(`^${key.split('.')[0]}: +# (.*)$`, 'm').exec(text);

  return [
    '| Key | Type | Default | Description |',
    '| --- | ---- | ------- | ----------- |',
    ...rowsOf('', contents.items as Pair[]).map(
      ({ key, type, value, says }) => `| ${key} | ${type} | \`${value}\` | ${says} |`,
    ),
  ].join('\n');
}

/** The README with that table between its two marks. */
export function withTable(readme: string, table: string): string {
  const [before, after] = [readme.indexOf(BEGIN), readme.indexOf(END)];
  if (before < 0 || after < before) throw new Error(`the README has not ${BEGIN} … ${END}`);
  return `${readme.slice(0, before)}${BEGIN}\n\n${table}\n\n${readme.slice(after)}`;
}

function typeOf(node: Node): string {
  if (isMap(node)) return 'object';
  if (!isScalar(node)) return 'list';
  return { number: 'int', boolean: 'bool' }[typeof node.value as string] ?? 'string';
}
