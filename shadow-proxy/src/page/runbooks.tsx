/** The kit's runbooks as pages, so that links of the status page work from anywhere. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Marked } from 'marked';
import { htmlDocument } from '../html/document.js';
import { retyped } from '../text/invocation.js';

const FOLDER = fileURLToPath(new URL('../../../../runbooks', import.meta.url));

/** Links lead to other runbooks; the name of a file that is not served is shown instead of a link. */
const marked = new Marked({
  renderer: {
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens);
      if (/^(?:[\w-]+\.md)?(?:#.*)?$/.test(href)) return `<a href="${href}">${text}</a>`;
      return /^https?:/.test(href)
        ? `<a href="${href}" rel="noopener">${text}</a>`
        : `<code>${href.replace(/^(\.\.\/)+/, '')}</code>`;
    },
  },
});

/**
 * @param file a file of `runbooks/`, such as `ServerDown.md`; null is returned if it does not exist, or the kit has no
 * runbooks
 */
export function runbookPage(file: string): string | null {
  if (!/^[\w-]+\.md$/.test(file)) return null;
  let text: string;
  try {
    text = retyped(readFileSync(join(FOLDER, file), 'utf8'));
  } catch {
    return null;
  }
  const html = marked.parse(text, { async: false });
  return htmlDocument({
    title: file.slice(0, -'.md'.length),
    body: <main dangerouslySetInnerHTML={{ __html: html }} />,
    css: CSS,
  });
}

const CSS = `
pre { background: var(--panel); border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .8rem; overflow-x: auto; overflow-wrap: normal; }
pre code { padding: 0; background: none; }
main { max-width: 50rem; }
`;
