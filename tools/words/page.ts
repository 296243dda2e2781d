/** docs/glossary.md, made from docs/glossary.yaml (`npm run docs:glossary`). */
import { type Glossary } from './glossary.js';

const ABOUT = `# Glossary

One word for one thing, in the documentation, the commands, the status page, the metrics, the alerts and the log.
Made by \`npm run docs:glossary\` from \`docs/glossary.yaml\`. \`npm run lint:words\` refuses the words of the last column
in all pages, in all messages, and in the names of all code.
`;

const PHRASES = `## Other words that are refused

| not | write instead |
| --- | --- |`;

const NAMES = `## Words that are refused in the names of code

| not | write instead |
| --- | --- |`;

export const renderGlossary = ({ terms, phrases, names }: Glossary): string =>
  [
    ABOUT,
    '| term | meaning | not |',
    '| --- | --- | --- |',
    ...terms.map(({ term, meaning, not }) => row(bold(term), meaning, not.flatMap(({ words }) => words).join(', '))),
    '',
    PHRASES,
    ...phrases.map(({ words, use }) => row(words.join(', '), use)),
    '',
    NAMES,
    ...names.map(({ words, use }) => row(words.join(', '), use)),
    '',
  ].join('\n');

const row = (...cells: string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
const bold = (term: string): string =>
  term.replaceAll(/[^,]+/g, (word) => word.replace(word.trim(), `**${word.trim()}**`));
