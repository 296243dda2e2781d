/** Our ESLint rules for tests: what they refuse, and what they leave. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Linter, type Rule } from 'eslint';

const FILE = join(fileURLToPath(new URL('../../../../../', import.meta.url)), 'shadow-proxy/build/test-rules.mjs');
const rules = (await import(pathToFileURL(FILE).href)) as Record<string, Rule.RuleModule>;

/** The lines that a rule refuses. */
function refused(rule: string, code: string): number[] {
  const messages = new Linter().verify(code, {
    plugins: { ours: { rules: { it: rules[rule] } } },
    rules: { 'ours/it': 'error' },
  });
  assert.ok(
    messages.every(({ fatal }) => fatal !== true),
    messages[0]?.message,
  );
  return messages.map(({ line }) => line);
}

/** In a test whose sleep is imported, with an assertion behind it. */
const waits = (body: string, behind = 'assert.equal(a, 1);'): number[] =>
  refused(
    'noFixedWait',
    `import { setTimeout as rest } from 'node:timers/promises'; const LONG = 3 * 100; test(async () => {\n${body}\n${behind}\n});`,
  );

test('a fixed time before an assertion is refused, however it is written', () => {
  for (const line of [
    'await rest(100);',
    'await rest(LONG);',
    'await rest(2 * LONG);',
    'await rest(unknown());',
    'await new Promise((resolve) => setTimeout(resolve, 100));',
    'await rest(100); await other();',
  ])
    assert.deepEqual(waits(line), [2], line);
  assert.deepEqual(waits('await rest(100);', 'if (a) for (const b of c) assertEqual(b);'), [2]);
});

test('short times, sleeps with a comment, those of a loop and those without an assertion are left', () => {
  for (const line of [
    'await rest(10);',
    'await rest(Math.random() * 5);',
    'await other(100);',
    '// Only time shows it.\nawait rest(100);',
    'await rest(100); // Only time shows it.',
    'while (!a) await rest(100);',
    'while (!a) { b(); await rest(100); }',
  ])
    assert.deepEqual(waits(line), [], line);
  assert.deepEqual(waits('await rest(100);', 'await other();'), []);
  assert.deepEqual(waits('await other(); // It answers.\nawait rest(100);'), [3], 'the comment is of another line');
});

test('a limit of wall-clock time is refused, but one with patience', () => {
  const limits = (code: string): number[] => refused('noWallClockLimit', code);
  for (const line of [
    'assert.ok(performance.now() - since < 100);',
    'let longest = 0; longest = Math.max(longest, performance.now() - since); assert.ok(longest < 100);',
    'const took = Date.now() - since; assert.ok(took > 10 && took <= 100, `${took} ms`);',
  ])
    assert.deepEqual(limits(line), [1], line);
  for (const line of [
    'assert.ok(performance.now() - since < patienceMs(100));',
    'const took = Date.now() - since; assert.ok(took >= 100);',
    'const used = cpu(); assert.ok(used < 100);',
    'if (performance.now() - since > 100) fail();',
  ])
    assert.deepEqual(limits(line), [], line);
});

test('a file of tests without a comment at its top is refused', () => {
  assert.deepEqual(refused('sayWhatTheyShow', 'test();'), [1]);
  assert.deepEqual(refused('sayWhatTheyShow', '/** What they show. */\ntest();'), []);
});

test('a file with real servers that does not say what only they can show is refused', () => {
  const refusedReal = (code: string): number[] => refused('sayWhatIsReal', code);
  for (const line of [
    'Needs real servers: the wordings of KeyDB.',
    'Needs real processes: SIGKILL in the middle of a write.',
    'Needs real sockets: TLS.',
    'Needs real files: a plan that changes.',
    'Not simulated yet: an order that no profile has.',
  ])
    assert.deepEqual(refusedReal(`/**\n * What they show.\n *\n * ${line}\n */\ntest();`), [], line);
  for (const code of [
    'test();',
    '/** What they show. */\ntest();',
    '/**\n * What they show.\n *\n * Needs real servers.\n */\ntest();',
    '/**\n * What they show.\n *\n * Needs real servers: \n */\ntest();',
    '/**\n * What they show.\n *\n * Needs real luck: a quiet machine.\n */\ntest();',
    '/**\n * What they show.\n *\n * Needs real servers: a line that goes\n * on.\n */\ntest();',
    '/** What they show. Needs real sockets: TLS. */\ntest();',
    '/** What they show. */\ntest();\n/**\n * Needs real sockets: TLS.\n */\n',
  ])
    assert.equal(refusedReal(code).length, 1, code);
});
