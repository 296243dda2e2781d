/** The runbooks that come with the kit: each parses, has what a runbook must have, and names nothing that is not there. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Lexer, type Token, type Tokens, walkTokens } from 'marked';
import { openRunbook, ROOT, runbookNames, SHELF } from '../../src/runbook/shelf.js';
import { commandsIn, problemOf } from './commands.js';

const names = runbookNames();
const WALKED = ['week-0-decide-and-build', 'week-1-shadow', 'week-2-read-only', 'week-3-read-write', 'week-4-critical-path-and-retire', 'rollback', 'red-button', 'abort-the-migration', 'active-active-counters', 'upgrade-keydb', 'leave-keydb'];
const text = (name: string): string => readFileSync(join(SHELF, `${name}.md`), 'utf8');

test('every page parses; its steps have ids of their own, and each that changes something an undo', () => {
  for (const name of WALKED) assert.ok(names.includes(name), `there is no ${name}.md`);
  for (const name of names) openRunbook(name);
  for (const name of WALKED) {
    const { steps } = openRunbook(name);
    assert.ok(steps.length > 0, `${name} has no steps`);
    for (const { id, changes, undo, irreversible } of steps) assert.ok(changes === undefined || (undo ?? irreversible) !== undefined, `${name} ${id}`);
  }
  assert.equal(openRunbook('week-1').name, 'week-1-shadow', 'the beginning of a name is enough');
  assert.throws(() => openRunbook('week'), /week may be several: week-0.*week-4/);
  assert.throws(() => openRunbook('weak-1'), /is no runbook: .*week-1-shadow/);
});

test('every walked page says when to stop, how to go back, whom to tell, how long it takes', () => {
  for (const name of WALKED) {
    const page = text(name);
    for (const [what, pattern] of [
      ['time', /^\| time \|/m],
      ['preconditions', /^\| you need \|/m],
      ['stop', /^## Stop when/m],
      ['back', /go back/i],
      ['tell', /^## .*tell|^\| tell \|/im],
    ] as const) {
      assert.match(page, pattern, `${name}: ${what}`);
    }
  }
});

test('every step of the weeks shows what it printed, or asks for JSON', () => {
  for (const name of WALKED.filter((each) => each.startsWith('week-'))) {
    for (const { id, sample, run } of openRunbook(name).steps) assert.ok(sample !== null || /--json|--format/.test(run), `${name} ${id}`);
  }
});

const pages = ['README.md', 'terraform/README.md', 'ansible/README.md', ...readdirSync(join(ROOT, 'docs')).filter((file) => file.endsWith('.md')).map((file) => `docs/${file}`), ...readdirSync(SHELF).map((file) => `runbooks/${file}`)];

test('every command and option that runbooks, README and docs name is there', () => {
  const problems: string[] = [];
  let seen = 0;
  for (const page of pages) {
    for (const command of commandsIn(readFileSync(join(ROOT, page), 'utf8'))) {
      const problem = problemOf(command);
      if (problem !== undefined) seen++;
      if (typeof problem === 'string') problems.push(`${page}: ${command}: ${problem}`);
    }
  }
  assert.deepEqual(problems, []);
  assert.ok(seen > 200, `only ${seen} commands were found`);
  for (const wrong of ['npx shadow-compare promot x', 'npx shadow-compare promote a b', 'npx shadow-compare status --wach', 'shadow-compare promote x --to lve', 'npm run demos', 'npx shadow-proxy --plann x', 'ansible-playbook playbooks/sight.yml']) {
    assert.equal(typeof problemOf(wrong), 'string', wrong);
  }
});

test('every file that a runbook links to is there', () => {
  for (const page of readdirSync(SHELF)) {
    void walkTokens(Lexer.lex(readFileSync(join(SHELF, page), 'utf8')), (token: Token) => {
      const { type, href } = token as Tokens.Link;
      if (type !== 'link' || /^https?:/.test(href)) return;
      const file = href.split('#')[0];
      assert.ok(existsSync(join(dirname(join(SHELF, page)), file)), `${page} links to ${href}`);
    });
  }
});
