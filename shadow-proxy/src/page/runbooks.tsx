/** The runbooks that come with the kit, as pages: whoever reads the status page can follow its links from anywhere. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Marked } from 'marked';
import { htmlDocument } from '../html/document.js';

const FOLDER = fileURLToPath(new URL('../../../../runbooks', import.meta.url));

export interface RunbookPage {
  /** Without its ending. */
  readonly name: string;
  readonly html: string;
}

/** Links lead to other runbooks; a file that is not served is named instead. */
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

/** Empty where the kit was installed without its runbooks. */
export function runbookPages(): readonly RunbookPage[] {
  let files: string[];
  try {
    files = readdirSync(FOLDER).filter((file) => file.endsWith('.md'));
  } catch {
    return [];
  }
  return files.map((file) => {
    const name = file.slice(0, -'.md'.length);
    const html = marked.parse(readFileSync(join(FOLDER, file), 'utf8'), { async: false });
    return {
      name,
      html: htmlDocument({ title: name, body: <main dangerouslySetInnerHTML={{ __html: html }} />, css: CSS }),
    };
  });
}

const CSS = `
pre { background: var(--panel); border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .8rem; overflow-x: auto; overflow-wrap: normal; }
pre code { padding: 0; background: none; }
main { max-width: 50rem; }
`;
