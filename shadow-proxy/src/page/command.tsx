/** A command to copy, and a runbook to read. */
import { createContext } from 'preact';
import type { JSX } from 'preact';

/**
 * How a command of `shadow-compare` (without the program) is typed to reach the same proxy. The document of the page or
 * of the report knows it.
 */
export type TypedAs = (command: string) => string;

export const CommandLine = createContext<TypedAs>((command) => `shadow-compare ${command}`);

/**
 * Lines break between words, never inside one: an option that is cut at its hyphens is hard to read.
 *
 * @param text arguments of `shadow-compare`, without the program
 */
export const Command = ({ text }: { text: string }): JSX.Element => (
  <CommandLine.Consumer>
    {(typedAs) => (
      <code class="command">
        {typedAs(text)
          .split(' ')
          .map((word, at) => (
            <>
              {at > 0 && ' '}
              <span>{word}</span>
            </>
          ))}
      </code>
    )}
  </CommandLine.Consumer>
);

/** @param linked whether a proxy serves the document, and so the runbooks, too */
export const Runbook = ({ name, linked }: { name: string; linked: boolean }): JSX.Element =>
  linked ? (
    <a href={`/runbooks/${name}.md`} target="_blank" rel="noopener">
      runbook {name}
    </a>
  ) : (
    <code>runbooks/{name}.md</code>
  );
