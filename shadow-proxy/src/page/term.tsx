/**
 * A word with its meaning: shown on hover, on tap, and to a screen reader. A list at the end of the page has all
 * meanings.
 */
import type { ComponentChildren, JSX } from 'preact';
import { TERMS, type TermName } from './terms.js';

const idOf = (name: TermName): string => `term-${name.replace(/\W/g, '-')}`;

/** @param of the term that is explained; the text shown is `children`, or the term itself */
export const Term = ({ of, children = of }: { of: TermName; children?: ComponentChildren }): JSX.Element => (
  <abbr class="term" title={TERMS[of]} aria-describedby={idOf(of)} tabIndex={-1}>
    {children}
  </abbr>
);

/** The meanings of the words on the page, shown once. */
export const Glossary = (): JSX.Element => (
  <details class="glossary">
    <summary>What the words on this page mean</summary>
    <dl>
      {(Object.keys(TERMS) as TermName[]).map((name) => (
        <div>
          <dt>{name}</dt>
          <dd id={idOf(name)}>{TERMS[name]}</dd>
        </div>
      ))}
    </dl>
  </details>
);
