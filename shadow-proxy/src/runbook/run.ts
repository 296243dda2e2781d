/** Runs a step's command, as an operator would in the repository's folder. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { quoted } from '../text/shell.js';
import type { Outcome, Variables } from './expect.js';

/** How much output of a command is kept, in bytes. Later output is shown, but not checked. */
const MAX_PRINTED = 16 << 20;

/** @param show gets the output as it arrives */
export async function runCommand(
  command: string,
  variables: Variables,
  directory: string,
  show: (text: string) => void,
): Promise<Outcome> {
  // Ctrl-C also reaches the command: its result is recorded before this process ends.
  const stay = (): void => undefined;
  process.on('SIGINT', stay);
  const child = spawn('sh', ['-euc', withThisKit(command)], {
    cwd: directory,
    env: { ...process.env, ...variables },
    stdio: ['inherit', 'pipe', 'pipe'],
  });
  let [stdout, printed] = ['', ''];
  const take = (text: string): string => {
    show(text);
    if (printed.length < MAX_PRINTED) printed += text;
    return text;
  };
  child.stdout
    .setEncoding('utf8')
    .on('data', (text: string) => void (stdout.length < MAX_PRINTED ? (stdout += take(text)) : take(text)));
  child.stderr.setEncoding('utf8').on('data', take);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    return { exit: code, stdout, printed };
  } catch (error) {
    return { exit: null, stdout, printed: `${printed}${(error as Error).message}` };
  } finally {
    process.off('SIGINT', stay);
  }
}

const PROGRAMS = { 'shadow-compare': '../cli/shadow-compare.js', 'shadow-proxy': '../main.js' };

/** A step uses the installation that reads the page: npx takes seconds, and a host without npm has no npx. */
const withThisKit = (command: string): string =>
  command.replace(/\bnpx --no-install (shadow-compare|shadow-proxy)\b/g, (_, name: keyof typeof PROGRAMS) =>
    [process.execPath, fileURLToPath(new URL(PROGRAMS[name], import.meta.url))].map(quoted).join(' '),
  );
