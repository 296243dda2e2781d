/** A dashboard as a picture: its questions are asked, its page is made, and headless Chromium draws it. */
import { readFileSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import type { AnnotationQuery, Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { PLOT_FILES } from '../../shadow-proxy/src/html/document.js';
import { filledIn, nameOf, panelsOf, queriesOf, variablesOf, type Variables } from '../rig/ask.js';
import type { Prometheus } from '../rig/prometheus.js';
import { pageOf, WIDTH, type Drawn, type Mark } from './page.js';
import { viewOf, type Answered, type Span, type View } from './view.js';

const FILES: Readonly<Record<string, { readonly file: string | URL; readonly type: string }>> = {
  '/uPlot.min.css': { file: PLOT_FILES.css, type: 'text/css' },
  '/uPlot.iife.min.js': { file: PLOT_FILES.library, type: 'text/javascript' },
  '/draw.js': { file: new URL('./draw.js', import.meta.url), type: 'text/javascript' },
  '/units.js': { file: new URL('./units.js', import.meta.url), type: 'text/javascript' },
};

/** The page comes from nowhere: every file is handed to the browser. */
const ORIGIN = 'http://preview.invalid';

/** Asks all that the dashboard asks. @param chosen values for variables that take one value only */
export async function gather(
  dashboard: Dashboard,
  prometheus: Prometheus,
  span: Span,
  chosen: Variables = {},
): Promise<Drawn> {
  const variables = await variablesOf(dashboard, prometheus, chosen);
  const views = new Map<number, View>();
  for (const panel of panelsOf(dashboard)) {
    const answers: Answered[] = [];
    for (const query of queriesOf(panel)) {
      const expr = filledIn(query.expr, variables, span);
      answers.push({
        query,
        series: query.instant
          ? await prometheus.instant(expr, span.to)
          : await prometheus.range(expr, span.from, span.to, span.step),
      });
    }
    views.set(panel.id!, viewOf(panel, answers, span));
  }
  const marks = (
    await Promise.all(
      (dashboard.annotations?.list ?? []).map((annotation) => marksOf(annotation, prometheus, variables, span)),
    )
  ).flat();
  return { dashboard, variables, span, views, marks: marks.sort((a, b) => a.at - b.at) };
}

/** One mark where each thing begins: what holds on at the next step is the same. */
async function marksOf(
  { expr, titleFormat, iconColor }: AnnotationQuery,
  prometheus: Prometheus,
  variables: Variables,
  span: Span,
): Promise<readonly Mark[]> {
  const { from, to, step } = span;
  const found = await prometheus.range(filledIn(expr ?? '', variables, span), from, to, step);
  return found.flatMap((series) => {
    const begins = series.points.filter(([at], place) => place === 0 || at - series.points[place - 1][0] > step * 1.5);
    return begins.map(([at]) => ({ at, color: iconColor, text: nameOf(titleFormat ?? '', series) }));
  });
}

/** @returns the bytes of a PNG */
export async function picture(browser: Browser, drawn: Drawn): Promise<Buffer> {
  const page = await browser.newPage({ viewport: { width: WIDTH, height: 900 } });
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  await page.route(`${ORIGIN}/**`, (route) => {
    const path = new URL(route.request().url()).pathname;
    const found = FILES[path];
    if (path === '/') return route.fulfill({ body: pageOf(drawn), contentType: 'text/html' });
    return found === undefined
      ? route.fulfill({ status: 404 })
      : route.fulfill({ body: readFileSync(found.file), contentType: found.type });
  });
  try {
    await page.goto(`${ORIGIN}/`);
    await page.waitForSelector('html[data-drawn]', { state: 'attached' }).catch((error: Error) => {
      throw new Error(`${drawn.dashboard.title} was not drawn: ${errors.join('; ') || error.message}`);
    });
    return await page.screenshot({ fullPage: true });
  } finally {
    await page.close();
  }
}
