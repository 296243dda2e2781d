/** Faults of a layout that a reader sees at once, found in a real browser. */
import { join } from 'node:path';
import type { Page } from 'playwright-core';

/** Characters of a command that a line shows at least, or all of it. */
const COMMAND_LINE = 20;

/** Notes the labels that plots draw: call it before the page is opened. */
export const watchLabels = (page: Page): Promise<unknown> =>
  page.addInitScript(() => {
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
      const canvas = this.canvas as HTMLCanvasElement & { labels?: Label[] };
      if (text.includes('→')) (canvas.labels ??= []).push({ text, x, y, width: this.measureText(text).width });
      fillText.call(this, text, x, y, ...more);
    };
    // Each drawing starts from an empty canvas.
    const { clearRect } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.clearRect = function (x, y, width, height) {
      const canvas = this.canvas as HTMLCanvasElement & { labels?: Label[] };
      if (width >= canvas.width && height >= canvas.height) canvas.labels = [];
      clearRect.call(this, x, y, width, height);
    };
    interface Label {
      readonly text: string;
      readonly x: number;
      readonly y: number;
      readonly width: number;
    }
  });

const WIDTHS = [1280, 800, 390];
/** Until a page is drawn again for another window, in ms. */
const SETTLE_MS = 150;

interface Layout {
  /** One line each; empty where there is none. */
  readonly faults: readonly string[];
  /** How many of each were looked at: a page without any shows nothing. */
  readonly words: number;
  readonly commands: number;
  readonly labels: number;
}

/** Words that are cut, elements beyond the window, commands in a narrow column, labels over curves. */
const layoutOf = (page: Page): Promise<Layout> =>
  page.evaluate((least): Layout => {
    const faults: string[] = [];
    const all = [...document.body.querySelectorAll<HTMLElement>('*')];
    const shown = (element: Element): boolean => element.checkVisibility() && element.getClientRects().length > 0;
    for (const element of all.filter(shown)) {
      const { left, right } = element.getBoundingClientRect();
      if (right > innerWidth + 1 || left < -1)
        faults.push(`<${element.tagName.toLowerCase()} class="${element.className}"> reaches to ${right} px`);
    }

    let words = 0;
    const range = document.createRange();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
      const parent = node.parentElement!;
      if (!shown(parent) || parent.closest('.u-legend') !== null) continue;
      const room = parent.closest('article, section, main, body')!.clientWidth;
      // A line may also end after a hyphen or a slash, but not in a command.
      const word = parent.closest('.command') === null ? /[^\s/\u2013-]+[/\u2013-]*/g : /\S+/g;
      for (const { 0: text, index } of node.textContent!.matchAll(word)) {
        words++;
        range.setStart(node, index);
        range.setEnd(node, index + text.length);
        const lines = new Map([...range.getClientRects()].map(({ top, width }) => [Math.round(top), width]));
        const width = [...lines.values()].reduce((a, b) => a + b, 0);
        if (lines.size > 1 && width < room * 0.8)
          faults.push(`"${text}" is cut into ${lines.size} in <${parent.tagName.toLowerCase()}>`);
      }
    }

    const commands = all.filter((element) => element.matches('.command') && shown(element));
    for (const command of commands) {
      const text = command.textContent!;
      const lines = new Set(
        [...command.querySelectorAll('span')].map((each) => Math.round(each.getBoundingClientRect().top)),
      );
      if (text.length / lines.size < Math.min(least, text.length)) faults.push(`"${text}" takes ${lines.size} lines`);
    }

    let labels = 0;
    for (const plot of document.querySelectorAll('plot-view')) {
      const canvas = plot.querySelector<HTMLCanvasElement & { labels?: Label[] }>('canvas')!;
      const over = plot.querySelector('.u-over')!.getBoundingClientRect();
      const box = canvas.getBoundingClientRect();
      const scale = canvas.width / box.width;
      const drawn = (canvas.labels ?? []).map(({ text, x, y, width }) => ({
        text,
        left: x / scale,
        right: (x + width) / scale,
        top: y / scale,
        bottom: y / scale + 11,
      }));
      labels += drawn.length;
      drawn.forEach((label, at) => {
        if (label.bottom > over.top - box.top) faults.push(`the label "${label.text}" is over the curves`);
        if (label.left < 0 || label.right > box.width || label.top < 0) faults.push(`"${label.text}" is cut off`);
        for (const other of drawn.slice(at + 1))
          if (
            label.left < other.right &&
            other.left < label.right &&
            label.top < other.bottom &&
            other.top < label.bottom
          )
            faults.push(`"${label.text}" is over "${other.text}"`);
      });
    }
    interface Label {
      readonly text: string;
      readonly x: number;
      readonly y: number;
      readonly width: number;
    }
    return { faults, words, commands: commands.length, labels };
  }, COMMAND_LINE);

/** At each width, and at the first in both colours; with pictures in both of all, where there is a folder for them. */
export async function layoutsOf(
  page: Page,
  pictures: string | undefined,
  name: string,
): Promise<readonly (Layout & { readonly look: string })[]> {
  const layouts = [];
  for (const width of WIDTHS)
    for (const colorScheme of ['light', 'dark'] as const) {
      // Colours move nothing.
      if (colorScheme === 'dark' && width !== WIDTHS[0] && pictures === undefined) continue;
      const look = `${width}-${colorScheme}`;
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await page.waitForTimeout(SETTLE_MS);
      layouts.push({ look, ...(await layoutOf(page)) });
      if (pictures !== undefined)
        await page.screenshot({ path: join(pictures, `${name}-${look}.png`), fullPage: true });
    }
  return layouts;
}
