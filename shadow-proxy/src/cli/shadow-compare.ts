/** The operator's program. */
import { endAtStrayErrors, parseArguments } from './exit.js';
import { operatorProgram } from './program.js';

endAtStrayErrors();
await parseArguments(await operatorProgram(process.argv[2]));
