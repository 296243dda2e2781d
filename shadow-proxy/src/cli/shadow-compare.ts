/** The operator's program. */
import { parseArguments } from './exit.js';
import { operatorProgram } from './program.js';

await parseArguments(await operatorProgram(process.argv[2]));
