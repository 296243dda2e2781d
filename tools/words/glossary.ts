/**
 * The words of the project: reads docs/glossary.yaml, and finds the words in a text that the glossary refuses.
 *
 * The check of Markdown (`markdown.ts`), the check of messages (`messages.ts`) and the page (`page.ts`) all use it.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';

const refusedSchema = z.strictObject({
  words: z.array(z.string().min(1)).min(1),
  use: z.string().optional(),
  except: z.array(z.string().min(1)).default([]),
});

const glossarySchema = z.strictObject({
  terms: z.array(
    z.strictObject({
      term: z.string(),
      meaning: z.string().transform(oneLine),
      not: z.array(refusedSchema).default([]),
    }),
  ),
  phrases: z.array(refusedSchema.required({ use: true })),
  names: z.array(refusedSchema.required({ use: true })).default([]),
});

export type Glossary = z.infer<typeof glossarySchema>;

/** A refused word in a text: where it begins (an index into the text), the word, and what to write instead. */
export interface Refused {
  readonly index: number;
  readonly word: string;
  readonly use: string;
}

/** @throws ZodError where the file has not the form of a glossary. */
export const parseGlossary = (yaml: string): Glossary => glossarySchema.parse(parse(yaml));

export const readGlossary = (path: string): Glossary => parseGlossary(readFileSync(path, 'utf8'));

/** Compiles the glossary into a function that finds every refused word of a text, in the text's order. */
export const refusedBy = ({ terms, phrases }: Glossary): ((text: string) => Refused[]) =>
  finderOf([
    ...terms.flatMap(({ term, not }) => not.map(({ words, except, use = term }) => ({ words, except, use }))),
    ...phrases,
  ]);

/** The same for the words of a name in code, of which more are refused. */
export function namesRefusedBy(glossary: Glossary): (words: string) => Refused[] {
  const [inTexts, inNames] = [refusedBy(glossary), finderOf(glossary.names)];
  return (words) => [...inTexts(words), ...inNames(words)];
}

function finderOf(refused: readonly z.infer<typeof refusedSchema>[]): (text: string) => Refused[] {
  const entries = refused.map(({ words, except, use = '' }) => ({
    pattern: patternOf(words),
    except: except.length === 0 ? null : patternOf(except),
    use,
  }));
  return (text) =>
    entries
      .flatMap(({ pattern, except, use }) => {
        const fine = except === null ? [] : [...text.matchAll(except)];
        return [...text.matchAll(pattern)]
          .filter(
            ({ index }) => !fine.some((phrase) => phrase.index <= index && index < phrase.index + phrase[0].length),
          )
          .map(({ 0: word, index }) => ({ index, word: oneLine(word), use }));
      })
      .sort((a, b) => a.index - b.index);
}

/** Whole words in any case; a space is any white space, `#` a number. Longer words first, so that they win. */
function patternOf(words: readonly string[]): RegExp {
  const alternatives = [...words]
    .sort((a, b) => b.length - a.length)
    .map((word) =>
      word
        .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
        .replaceAll(' ', '\\s+')
        .replaceAll('#', '\\d+'),
    );
  return new RegExp(`(?<![\\w-])(?:${alternatives.join('|')})(?![\\w-])`, 'gi');
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
