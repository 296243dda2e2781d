/**
 * A whole HTML document in one file. A browser loads nothing else to show it, which its own Content-Security-Policy
 * enforces.
 *
 *   body: preact's elements, which escape their contents ─▶ htmlDocument ─▶ text, with styles, and scripts if it has
 * plots
 *
 * Room: html: HTML documents that load nothing from other hosts.
 * Called by: page, report.
 * Calls: no room.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { ComponentChildren } from 'preact';
import { renderToStaticMarkup } from 'preact-render-to-string';
import { STYLE } from './style.js';

export interface HtmlDocument {
  readonly title: string;
  readonly body: ComponentChildren;
  /** Additional rules for this document. */
  readonly css?: string;
}

const require = createRequire(import.meta.url);

/** The files that draw plots: uPlot's style; uPlot, which is a global; and the module that uses it. */
export const PLOT_FILES = {
  css: require.resolve('uplot/dist/uPlot.min.css'),
  library: require.resolve('uplot/dist/uPlot.iife.min.js'),
  draw: new URL('./draw.js', import.meta.url),
};

/** The document as text. It is light or dark as the reader's system is, and readable from 320 px on. */
export function htmlDocument({ title, body, css = '' }: HtmlDocument): string {
  const content = renderToStaticMarkup(<body>{body}</body>);
  const hasPlots = content.includes('<plot-view');
  const scripts = hasPlots ? [inlined(PLOT_FILES.library), inlined(PLOT_FILES.draw)] : [];
  const policy = `default-src 'none'; style-src 'unsafe-inline'; script-src ${scripts.map((text) => `'${digest(text)}'`).join(' ') || "'none'"}; base-uri 'none'; form-action 'none'`;
  const styles = [...(hasPlots ? [readFileSync(PLOT_FILES.css, 'utf8')] : []), STYLE, css].join('\n');
  const head = renderToStaticMarkup(
    <head>
      <meta charset="utf-8" />
      <meta http-equiv="Content-Security-Policy" content={policy} />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <title>{title}</title>
      <style dangerouslySetInnerHTML={{ __html: styles }} />
      {scripts.map((text, at) => (
        <script type={at === 0 ? undefined : 'module'} dangerouslySetInnerHTML={{ __html: text }} />
      ))}
    </head>,
  );
  return `<!doctype html>\n<html lang="en">\n${head}\n${content}\n</html>\n`;
}

/** Escapes a script so that it may stand between `<script>` and `</script>`. */
const inlined = (file: string | URL): string =>
  readFileSync(file, 'utf8')
    .replace(/^\/\/# sourceMappingURL=.*$/m, '')
    .replaceAll('</script', '<\\/script');

/** The digest of a script for a Content-Security-Policy. */
export const digest = (script: string): string => `sha256-${createHash('sha256').update(script).digest('base64')}`;
