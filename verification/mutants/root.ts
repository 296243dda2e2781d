import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The root of the repository, with a slash at its end. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The text of a file below the root; null where there is none. */
export const sourceOf = (file: string): string | null =>
  existsSync(ROOT + file) ? readFileSync(ROOT + file, 'utf8') : null;

/** Every test file of the proxy, from the root. */
export const testFiles = (): readonly string[] =>
  readdirSync(`${ROOT}shadow-proxy/test`, { recursive: true, encoding: 'utf8' })
    .map((file) => `shadow-proxy/test/${file.replaceAll('\\', '/')}`)
    .filter((file) => /\.test\.tsx?$/.test(file))
    .sort();
