/**
 * Compiles Stryker's copy of the proxy in the current folder, file by file: it is full of mutants, which have no types
 * that hold. The other programs of the repository are not needed there.
 */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { ROOT } from '../root.js';
import { compiled, transpile } from '../tree.js';

/** What Stryker puts into a file that has mutants; the others are compiled already. */
const INSTRUMENTED = 'function stryNS_';

for (const folder of ['shadow-proxy', 'counters/src']) {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const file = `${folder}/${name.replaceAll('\\', '/')}`;
    if (!/\.tsx?$/.test(file)) continue;
    mkdirSync(dirname(compiled(file)), { recursive: true });
    const source = readFileSync(file, 'utf8');
    if (source.includes(INSTRUMENTED)) writeFileSync(compiled(file), transpile(file, source));
    else copyFileSync(ROOT + compiled(file), compiled(file));
  }
}
