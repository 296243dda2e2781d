/** The operator's program. */
import { exitOnUncaughtErrors, parseArguments, watchOutput } from './exit.js';
import { operatorProgram } from './program.js';

exitOnUncaughtErrors();
watchOutput();
await parseArguments(await operatorProgram(process.argv[2]));
