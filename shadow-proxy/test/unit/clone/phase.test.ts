/** The lines that a long phase prints, with and without a terminal. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';

type Phase = (
  doing: string,
  work: () => Promise<string>,
  options: { out: { isTTY: boolean; write(text: string): void }; beatMs: number },
) => Promise<void>;
const FILE = fileURLToPath(new URL('../../../../../shadow-proxy/build/phase.mjs', import.meta.url));
const { phase } = (await import(pathToFileURL(FILE).href)) as { phase: Phase };

async function printed(isTTY: boolean, work: () => Promise<string>): Promise<string> {
  let text = '';
  const out = { isTTY, write: (more: string) => void (text += more) };
  await phase('Counting', work, { out, beatMs: 20 }).catch((error: Error) => (text += `thrown: ${error.message}`));
  return text.replaceAll(/\d+\.\d s/g, 'T');
}
const counted = (): Promise<string> => sleep(250, 'Counted');

test('a phase has a line at its start and its end, and lines between them, where there is no terminal', async () => {
  assert.match(await printed(false, counted), /^Counting …\n(Counting … T\n)+Counted \(T\)\.\n$/);
});

test('a phase has one line whose time runs on a terminal', async () => {
  assert.match(await printed(true, counted), /^Counting …(\r\x1b\[2KCounting … T)+\r\x1b\[2KCounted \(T\)\.\n$/);
});

test('the error of a phase is thrown, and its line is removed from a terminal', async () => {
  const fails = (): Promise<string> => Promise.reject(new Error('no'));
  assert.equal(await printed(true, fails), 'Counting …\r\x1b[2Kthrown: no');
});
