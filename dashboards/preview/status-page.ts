/**
 * `npm run docs:picture`: the status page of a proxy as a picture, for the documentation. Exits with 0; with 2 where
 * Chromium is missing or no proxy answers.
 */
import { Command } from 'commander';
import { chromium } from 'playwright-core';
import { onPath } from '../../shadow-proxy/src/local/program.js';

interface Options {
  readonly admin: string;
  readonly out: string;
}

/** In CSS pixels. Of the page's height, what ends with the first workloads is shown, and so much below them. */
const SIZE = { width: 1200, height: 1000 };
const BELOW = 8;
/** Until its first figures are drawn. */
const SETTLE_MS = 3_000;

const { admin, out } = new Command('docs:picture')
  .description('Draws the status page of a running proxy')
  .option('--admin <url>', 'its admin address, without a token', 'http://127.0.0.1:9400/')
  .option('--out <file>', 'the picture', 'docs/images/status-page.png')
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts<Options>();
const executablePath = process.env.CHROMIUM ?? onPath('chromium');
if (executablePath === null) {
  process.stderr.write('The picture needs chromium (apt-get install chromium), or CHROMIUM with its path\n');
  process.exit(2);
}
const browser = await chromium.launch({ executablePath, args: ['--headless', '--no-sandbox', '--disable-gpu'] });
try {
  const page = await browser.newPage({ viewport: SIZE, colorScheme: 'light' });
  await page.goto(admin);
  await page.waitForTimeout(SETTLE_MS);
  const card = await page.locator('article.workload').first().boundingBox();
  if (card === null) throw new Error('the page shows no workload');
  const height = Math.ceil(card.y + card.height + BELOW);
  await page.screenshot({ path: out, clip: { x: 0, y: 0, width: SIZE.width, height } });
  process.stdout.write(`${out}\n`);
} catch (error) {
  process.stderr.write(`${admin}: ${(error as Error).message}\n`);
  process.exitCode = 2;
} finally {
  await browser.close();
}
