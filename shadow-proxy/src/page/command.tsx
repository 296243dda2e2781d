/** A command to copy, and a runbook to read. */
import type { JSX } from 'preact';

/** Where `shadow-compare` looks for a proxy by default. */
const DEFAULT_ADMIN = 'http://127.0.0.1:9400';

/**
 * Lines break between its words, never inside one: an option that is cut at its hyphens cannot be read.
 *
 * @param text of `shadow-compare`, without the program; the page adds its own address where that is not the default
 */
export function Command({ text }: { text: string }): JSX.Element {
  const origin = (globalThis as { location?: { origin: string } }).location?.origin ?? DEFAULT_ADMIN;
  const admin = !origin.startsWith('http') || origin === DEFAULT_ADMIN ? '' : ` --admin ${origin}`;
  const words = `npx shadow-compare ${text}${admin}`.split(' ');
  return (
    <code class="command">
      {words.map((word, at) => (
        <>
          {at > 0 && ' '}
          <span>{word}</span>
        </>
      ))}
    </code>
  );
}

/** @param linked whether the document comes from a proxy, which has the runbooks, too */
export const Runbook = ({ name, linked }: { name: string; linked: boolean }): JSX.Element =>
  linked ? (
    <a href={`/runbooks/${name}.md`} target="_blank" rel="noopener">
      runbook {name}
    </a>
  ) : (
    <code>runbooks/{name}.md</code>
  );
