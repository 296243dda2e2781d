/** A real browser for tests: headless Chromium, which can reach nothing but what a test serves. */
import { after, type TestContext } from 'node:test';
import { chromium, type Browser, type Page } from 'playwright-core';
import { CHROMIUM, needs } from './needs.js';

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** One for all tests of the process: each page has a context of its own, with nothing of the others. */
let opened: Promise<Browser> | undefined;
after(async () => (await opened)?.close());

/** Null, with the test skipped, where there is no Chromium. */
export async function openBrowser(t: TestContext): Promise<Browser | null> {
  if (!(await needs(t, 'chromium'))) return null;
  return (opened ??= chromium.launch({ executablePath: CHROMIUM, args: FLAGS }));
}

export interface Looks {
  /** Of the window, in CSS pixels. Default 1280. */
  readonly width?: number;
  readonly dark?: boolean;
}

/** A page that notes what it should not do. */
export interface WatchedPage {
  readonly page: Page;
  /** What was written to its console as an error or warning, and errors that nobody caught. */
  readonly complaints: string[];
  /** Every URL that was asked for; what its Content-Security-Policy has held back was not. */
  readonly requests: string[];
}

export async function openPage(browser: Browser, { width = 1280, dark = false }: Looks = {}): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: dark ? 'dark' : 'light' });
  const page = await context.newPage();
  const [complaints, requests]: string[][] = [[], []];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('requestfinished', (request) => requests.push(request.url()));
  page.on('requestfailed', (request) => {
    if (request.failure()?.errorText !== 'csp') requests.push(request.url());
  });
  return { page, complaints, requests };
}

/** How far the page can be moved sideways, in pixels; 0 where it fits. */
export const overflow = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** Whether there is anything drawn on each of its plots. */
export const plotsDrawn = (page: Page): Promise<boolean[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll('plot-view')].map((plot) => {
      const canvas = plot.querySelector('canvas');
      if (canvas === null || canvas.width === 0) return false;
      const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height);
      return data.some((byte) => byte !== 0);
    }),
  );
