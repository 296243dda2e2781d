/**
 * The files of the status page: a document, the compiled modules that `app.js` imports, libraries, styles and runbooks.
 * They contain nothing about the shards: the page asks the API, which requires the token.
 *
 * Room: page: the status page.
 * Called by: admin, shard, report, cli.
 * Calls: text, route, plan, telemetry, storage, stages, html.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { renderToStaticMarkup } from 'preact-render-to-string';
import { digest, PLOT_FILES } from '../html/document.js';
import { STYLE } from '../html/style.js';
import { invocation, typed } from '../text/invocation.js';
import { runbookPage } from './runbooks.js';
import { VIEW_STYLE } from './style.js';

const ASSETS = '/assets/';
const RUNBOOKS = '/runbooks/';
/** The compiled modules are served below it, at the paths by which they import each other. */
const SOURCES = new URL('../', import.meta.url);
const APP = 'page/app.js';
const LIBRARIES = { preact: 'preact.js', 'preact/jsx-runtime': 'jsx-runtime.js' };

export interface PageFile {
  readonly type: string;
  readonly content: string | Buffer;
  /** The Content-Security-Policy: what a browser may load to show the file. */
  readonly policy: string;
}

let files: ReadonlyMap<string, PageFile> | null = null;

/** The page's file at this path; null if there is none. */
export function pageFile(path: string): PageFile | null {
  // Read one at a time, when it is requested: reading all of them would block the clients of the process for tens of
  // ms.
  if (path.startsWith(RUNBOOKS)) {
    const html = runbookPage(path.slice(RUNBOOKS.length));
    return html === null ? null : documentFile(html);
  }
  if (path !== '/' && !path.startsWith(ASSETS)) return null;
  files ??= readFiles();
  return files.get(path) ?? null;
}

function readFiles(): ReadonlyMap<string, PageFile> {
  const imports = JSON.stringify({
    imports: Object.fromEntries(Object.entries(LIBRARIES).map(([name, file]) => [name, ASSETS + file])),
  });
  const policy = `default-src 'none'; script-src 'self' '${digest(imports)}'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
  const file = (type: string, content: string | Buffer): PageFile => ({
    type: `${type}; charset=utf-8`,
    content,
    policy,
  });
  const read = (from: string | URL): PageFile => file('text/javascript', withoutMap(readFileSync(from, 'utf8')));
  return new Map([
    ['/', file('text/html', indexOf(imports))],
    [`${ASSETS}style.css`, file('text/css', `${readFileSync(PLOT_FILES.css, 'utf8')}\n${STYLE}${VIEW_STYLE}`)],
    [`${ASSETS}uplot.js`, read(PLOT_FILES.library)],
    ...Object.entries(LIBRARIES).map(([name, at]): [string, PageFile] => [
      ASSETS + at,
      read(fileURLToPath(import.meta.resolve(name))),
    ]),
    ...modulesOf(APP).map((module): [string, PageFile] => [ASSETS + module, read(new URL(module, SOURCES))]),
  ]);
}

/** A document with its own Content-Security-Policy, because its styles are inside. */
const documentFile = (html: string): PageFile => ({
  type: 'text/html; charset=utf-8',
  content: html,
  policy: "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
});

/** A module and everything that it imports by a relative path. */
function modulesOf(module: string, known = new Set<string>()): string[] {
  if (known.has(module)) return [];
  known.add(module);
  const text = readFileSync(new URL(module, SOURCES), 'utf8');
  for (const [, path] of text.matchAll(/^(?:import|export) (?:[^'"=]* from )?['"](\.[^'"]+)['"];$/gm))
    modulesOf(new URL(path, new URL(module, SOURCES)).href.slice(SOURCES.href.length), known);
  return [...known];
}

/** The sources that a source map would name are not served. */
const withoutMap = (text: string): string => text.replace(/^\/\/# sourceMappingURL=.*$/m, '');

const indexOf = (imports: string): string =>
  `<!doctype html>\n${renderToStaticMarkup(
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="shadow-compare" content={invocation('shadow-compare')} />
        <title>migration status</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href={`${ASSETS}style.css`} />
        <script type="importmap" dangerouslySetInnerHTML={{ __html: imports }} />
        <script src={`${ASSETS}uplot.js`} defer />
        <script type="module" src={`${ASSETS}${APP}`} />
      </head>
      <body>
        <noscript>This page needs JavaScript. Without it, run: {typed('shadow-compare status --watch')}</noscript>
        <main id="app" />
      </body>
    </html>,
  )}\n`;
