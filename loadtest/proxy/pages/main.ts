/** `npm run docs:figures`: fills the pages that quote docs/figures.json, and draws the picture of the bench. */
import { Command } from 'commander';
import { fillDocs } from './fill.js';

new Command('docs:figures').description('Fill the pages that quote docs/figures.json, and draw their picture.').parse();

const changed = await fillDocs();
process.stdout.write(changed.length === 0 ? 'nothing to change\n' : changed.map((name) => `filled ${name}\n`).join(''));
