/**
 * `npm run dashboards:png`: every dashboard as a picture, from a Prometheus that scrapes a small migration on this
 * machine, or from yours. Exits with 0, with 2 where something is missing or does not answer; nothing is left but the
 * pictures.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { chromium } from 'playwright-core';
import { positive } from '../../shadow-proxy/src/cli/exit.js';
import { onPath } from '../../shadow-proxy/src/local/program.js';
import { Prometheus } from '../rig/prometheus.js';
import { play, seed } from '../rig/scenario.js';
import { missing, SCRAPE_SECONDS, scraped, startStack } from '../rig/stack.js';
import { DASHBOARDS } from '../src/all.js';
import { gather, picture } from './render.js';

interface Options {
  readonly out: string;
  readonly prometheus?: string;
  readonly minutes: number;
  readonly workload: string;
  readonly scrape: number;
}

const STEPS = 240;

const program = new Command('dashboards:png')
  .description('Draws every dashboard, for review: a preview, not Grafana')
  .option('--out <directory>', 'where the pictures go', 'dist/dashboards/png')
  .option('--prometheus <url>', 'ask this Prometheus, and start nothing')
  .option('--minutes <n>', 'with --prometheus: how far back', positive, 180)
  .option('--scrape <seconds>', 'with --prometheus: how often it scrapes', positive, 15)
  .option('--workload <name>', 'of which Workload cutover tells', 'sessions')
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));

const options = program.parse().opts<Options>();
const executablePath = process.env.CHROMIUM ?? onPath('chromium');
const lacks = [
  ...(executablePath === null ? ['chromium (apt-get install chromium), or CHROMIUM with its path'] : []),
  ...(options.prometheus === undefined ? await missing() : []),
];
if (lacks.length > 0) {
  process.stderr.write(`The pictures need:\n${lacks.map((each) => `  ${each}\n`).join('')}`);
  process.exitCode = 2;
} else {
  try {
    if (options.prometheus === undefined) await ofARig();
    else
      await draw(
        new Prometheus(options.prometheus.replace(/\/+$/, '')),
        Math.floor(Date.now() / 1000 - options.minutes * 60),
        options.scrape,
      );
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exitCode = 2;
  }
}

async function ofARig(): Promise<void> {
  const stack = await startStack(seed);
  try {
    await scraped(stack);
    const from = Math.floor(Date.now() / 1000) - 3;
    await play(stack, (line) => process.stderr.write(`${line}\n`));
    await draw(stack.prometheus, from, SCRAPE_SECONDS);
  } finally {
    await stack.rig.close();
  }
}

async function draw(prometheus: Prometheus, from: number, scrape: number): Promise<void> {
  const to = Math.floor(Date.now() / 1000);
  const step = Math.max(1, Math.round((to - from) / STEPS));
  mkdirSync(options.out, { recursive: true });
  const browser = await chromium.launch({
    executablePath: executablePath!,
    args: ['--headless', '--no-sandbox', '--disable-gpu'],
  });
  try {
    for (const dashboard of DASHBOARDS) {
      const file = join(options.out, `${dashboard.uid!}.png`);
      writeFileSync(
        file,
        await picture(
          browser,
          await gather(dashboard, prometheus, { from, to, step, scrape }, { workload: options.workload }),
        ),
      );
      process.stdout.write(`${file}\n`);
    }
  } finally {
    await browser.close();
  }
}
