/** Programs of the user: checks and hooks. */
import type { Program, ProgramEnd } from './run-program.js';
import { world } from './world.js';

export type { Program, ProgramEnd };

/** Never rejects: errors are part of the result. */
export const runProgram = (program: Program): Promise<ProgramEnd> =>
  world.runProgram(program).catch(({ message: problem }: Error): ProgramEnd => ({ code: null, output: '', problem }));

/** How the program ended, with its last line: `exit code 1: too early`. */
export const endText = ({ code, output, problem }: ProgramEnd): string =>
  [problem ?? `exit code ${code}`, lastLine(output)].filter(Boolean).join(': ');

/** The last line that is not empty, at most 200 characters. */
export const lastLine = (output: string): string => (output.trim().split('\n').at(-1) ?? '').trim().slice(0, 200);
