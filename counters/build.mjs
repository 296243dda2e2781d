/** Compiles the package afresh: ES modules and CommonJS, each with its types. */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const tsc = path('../node_modules/typescript/bin/tsc');

rmSync(path('dist'), { recursive: true, force: true });
for (const project of ['tsconfig.json', 'tsconfig.cjs.json'])
  execFileSync(process.execPath, [tsc, '--project', path(project)], { stdio: 'inherit' });
writeFileSync(path('dist/cjs/package.json'), '{ "type": "commonjs" }\n');
