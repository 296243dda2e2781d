/** The operator's program. */
import { endAtStrayErrors, parseArguments, watchOutput } from './exit.js';
import { operatorProgram } from './program.js';

endAtStrayErrors();
watchOutput();
await parseArguments(await operatorProgram(process.argv[2]));
