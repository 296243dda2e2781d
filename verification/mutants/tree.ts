/** A copy of the repository as the tests see it: compiled code of its own, everything else by links. */
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { withFault, type Fault } from './fault.js';
import { ROOT } from './root.js';

const { options: OPTIONS } = ts.convertCompilerOptionsFromJson(
  ts.readConfigFile(`${ROOT}tsconfig.json`, ts.sys.readFile).config.compilerOptions,
  ROOT,
);

export const compiled = (file: string): string => join('dist', file.replace(/\.tsx?$/, '.js'));

/** One file, without its types being checked. */
export const transpile = (file: string, source: string): string =>
  ts.transpileModule(source, {
    fileName: file,
    // A single file does not say that it is a module.
    compilerOptions: { ...OPTIONS, module: ts.ModuleKind.ESNext, sourceMap: false },
  }).outputText;

export class Tree {
  readonly root = mkdtempSync(join(tmpdir(), 'mutants-'));

  constructor() {
    for (const name of readdirSync(ROOT)) {
      if (name === '.git') continue;
      if (name === 'dist') cpSync(join(ROOT, name), join(this.root, name), { recursive: true });
      else symlinkSync(join(ROOT, name), join(this.root, name));
    }
  }

  /** Compiles the faulty file into the tree; the caller restores it. */
  put(fault: Fault, source: string): void {
    writeFileSync(join(this.root, compiled(fault.file)), transpile(fault.file, withFault(fault, source)));
  }

  restore({ file }: Fault): void {
    cpSync(join(ROOT, compiled(file)), join(this.root, compiled(file)));
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
