/**
 * The words of the project:
 *
 *   npm run lint:words               checks pages, messages and names; what is not clean is in docs/words-todo.json
 *   npm run lint:words -- --shrink   removes the files from the list that have become clean
 *   npm run lint:words -- --all      shows also what is left to do in the files of the list
 *   npm run docs:glossary            writes docs/glossary.md
 *
 * Exit code 0: nothing to report; 1: errors.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { errorsOf, findAll, GLOSSARY, readTodo, shrunk, TODO } from './findings.js';
import { readGlossary } from './glossary.js';
import { renderGlossary } from './page.js';

const ROOT = process.cwd();
const program = new Command('words').description('Checks the words of pages, messages and names.');

program
  .command('lint', { isDefault: true })
  .option('--all', 'also the files that are listed as not clean yet')
  .option('--shrink', 'remove the files from the list that have become clean')
  .action(async ({ all = false, shrink = false }: { all?: boolean; shrink?: boolean }) => {
    const findings = await findAll(ROOT);
    if (shrink) writeFileSync(join(ROOT, TODO), `${JSON.stringify(shrunk(findings, readTodo(ROOT)), null, 2)}\n`);
    const errors = errorsOf(findings, all ? { terms: [], sentences: [] } : readTodo(ROOT));
    for (const line of errors) process.stdout.write(`${line}\n`);
    if (errors.length === 0) return;
    process.stdout.write(`\n${errors.length} errors. The words are those of docs/glossary.md.\n`);
    process.exitCode = 1;
  });

program.command('page').action(() => {
  writeFileSync(join(ROOT, 'docs', 'glossary.md'), renderGlossary(readGlossary(join(ROOT, GLOSSARY))));
});

await program.parseAsync();
