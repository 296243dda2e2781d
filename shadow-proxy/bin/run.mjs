/** What `npm run` starts: `run.mjs PROGRAM [options]`. bootstrap.mjs has the list of programs. */
import { advice } from './node-version.mjs';

// Not a static import: an old Node could not read that file.
import('./bootstrap.mjs').then(({ main }) => {
  if (advice !== null) process.stderr.write(`${advice}\n`);
  return main(process.argv.slice(2));
});
