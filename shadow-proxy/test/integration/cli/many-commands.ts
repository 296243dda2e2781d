/** Runs commands of `shadow-compare`, each that it is sent, and answers what each printed and its exit code. */
import { parseArguments, watchOutput } from '../../../src/cli/exit.js';
import { operatorProgram } from '../../../src/cli/program.js';

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

let printed = { stdout: '', stderr: '' };

for (const name of ['stdout', 'stderr'] as const)
  process[name].write = (text: string | Uint8Array) => {
    printed[name] += String(text);
    return true;
  };
watchOutput();

process.on('message', (args: string[]) => {
  void (async () => {
    printed = { stdout: '', stderr: '' };
    process.exitCode = 0;
    await parseArguments(await operatorProgram(args[0]), ['node', 'shadow-compare', ...args]);
    const ended: Ended = { code: Number(process.exitCode), ...printed };
    process.exitCode = 0;
    process.send!(ended);
  })();
});
process.on('disconnect', () => process.exit());
