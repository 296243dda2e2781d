/** Every fault of the files beside this one: each exports lists of them. */
import { readdirSync } from 'node:fs';
import type { Fault } from '../fault.js';
import { ROOT } from '../root.js';

const files = readdirSync(`${ROOT}verification/mutants/faults`).filter(
  (file) => file.endsWith('.ts') && file !== 'index.ts',
);
const modules = await Promise.all(
  files.sort().map((file) => import(`./${file.replace(/ts$/, 'js')}`) as Promise<Record<string, readonly Fault[]>>),
);

export const FAULTS: readonly Fault[] = modules.flatMap((module) => Object.values(module).flat());
