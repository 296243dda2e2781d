/** Starts one of the two commands: in a clone through bootstrap.mjs, which makes it ready first. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** No package has it: there, all is ready. */
const BOOTSTRAP = new URL('bootstrap.mjs', import.meta.url);

export async function start(script) {
  const args = process.argv.slice(2);
  if (existsSync(BOOTSTRAP)) return (await import(BOOTSTRAP.href)).start(script, args);
  const file = new URL(`../../dist/${script}`, import.meta.url);
  process.argv = [process.execPath, fileURLToPath(file), ...args];
  await import(file.href);
}
