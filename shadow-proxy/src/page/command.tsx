/** A command to copy, and a runbook to read. */
import { createContext } from 'preact';
import type { JSX } from 'preact';

/**
 * How a command of `shadow-compare`, given without the program, is typed to reach the same proxy. The page's document
 * and the report's maker know it.
 */
export type TypedAs = (command: string) => string;

export const CommandLine = createContext<TypedAs>((command) => `shadow-compare ${command}`);

/**
 * Lines break between its words, never inside one: an option that is cut at its hyphens cannot be read.
 *
 * @param text of `shadow-compare`, without the program
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

/** @param linked whether the document comes from a proxy, which has the runbooks, too */
export const Runbook = ({ name, linked }: { name: string; linked: boolean }): JSX.Element =>
  linked ? (
    <a href={`/runbooks/${name}.md`} target="_blank" rel="noopener">
      runbook {name}
    </a>
  ) : (
    <code>runbooks/{name}.md</code>
  );
