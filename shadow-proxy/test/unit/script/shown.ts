/** What the reader of scripts knows of a text, in short. */
import { readText } from '../../../src/script/text.js';
import type { KeyName } from '../../../src/script/values.js';

const shownName = (name: KeyName | null): string => {
  if (name === null) return '?';
  if (name === 'declared') return 'KEY';
  return 'text' in name ? `'${name.text}'` : `ARGV${name.argument}`;
};

/**
 * The calls of a text: `set KEY ARGV1, del 'a' ? …` for one that sets a declared key to the first argument, and one
 * that deletes `a`, an unknown key, and any number of others; null where it may call anything.
 */
export const callsOf = (text: string): string | null => shown(text, false);

/** Likewise for a library. */
export const callsOfLibrary = (text: string): string | null => shown(text, true);

function shown(text: string, isLibrary: boolean): string | null {
  const { calls } = readText(text, isLibrary);
  if (calls === null) return null;
  return calls
    .map(({ name, names, open }) => [name, ...names.map(shownName), ...(open ? ['…'] : [])].join(' '))
    .join(', ');
}

export const isRepeated = (text: string): boolean => readText(text, false).repeatable;
