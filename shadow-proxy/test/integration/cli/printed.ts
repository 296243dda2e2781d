/** Runs commands of `shadow-compare` in a process of its own, each that it is sent, and answers what each printed. */
import { parseArguments } from '../../../src/cli/exit.js';
import { operatorProgram } from '../../../src/cli/program.js';

for (const stream of [process.stdout, process.stderr])
  stream.write = (text: string | Uint8Array) => {
    printed += String(text);
    return true;
  };
let printed = '';

process.on('message', (args: string[]) => {
  void (async () => {
    printed = '';
    await parseArguments(await operatorProgram(args[0]), ['node', 'shadow-compare', ...args]);
    process.exitCode = 0;
    process.send!(printed);
  })();
});
process.send!('ready');
