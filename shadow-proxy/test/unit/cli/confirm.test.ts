/** A prompt asks again until it understands the answer. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { confirmEnd, confirmKeys, confirmYes } from '../../../src/cli/confirm.js';

interface Asked {
  /** What standard error got. */
  readonly shown: string;
  readonly error: (Error & { code?: string; exit?: number }) | null;
}

/** Asks on a terminal, where these lines are typed, and then the input ends. */
async function typing(t: TestContext, lines: readonly string[], question: () => Promise<void>): Promise<Asked> {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const original = Object.getOwnPropertyDescriptor(process, 'stdin')!;
  Object.defineProperty(process, 'stdin', { configurable: true, value: stdin });
  let shown = '';
  const write = t.mock.method(process.stderr, 'write', (text: string) => (shown += text) !== '');
  stdin.end(lines.map((line) => `${line}\n`).join(''));
  try {
    const error = await question().then(
      () => null,
      (problem: Error) => problem,
    );
    return { shown, error };
  } finally {
    write.mock.restore();
    Object.defineProperty(process, 'stdin', original);
  }
}

const times = (text: string, part: string): number => text.split(part).length - 1;

test('a number that is not the right one asks again, and the right one goes on', async (t) => {
  const ask = (): Promise<void> => confirmKeys(1_234, { what: 'Keys are deleted' }, undefined);
  const { shown, error } = await typing(t, ['y', '123', 'all', '1,234'], ask);
  assert.equal(error, null);
  assert.equal(times(shown, 'Type 1234 to continue'), 4);
  assert.equal(times(shown, 'This is not 1234; n stops.'), 3);
  assert.equal(times(shown, 'Keys are deleted'), 1, 'the effect is said once');
});

test('a name that is not the right one asks again, and yes is not a name', async (t) => {
  const ask = (): Promise<void> => confirmEnd('shop', { what: 'sessions would be complete' }, undefined);
  const { shown, error } = await typing(t, ['yes', 'Shop', 'sessions', ' shop '], ask);
  assert.equal(error, null);
  assert.equal(times(shown, 'This is not shop; n stops.'), 3);
});

test('a question for yes or no asks again, and takes y', async (t) => {
  const ask = (): Promise<void> => confirmYes({ what: 'A change' }, 'Run it?', '--yes');
  const { shown, error } = await typing(t, ['maybe', 'j', 'Y'], ask);
  assert.equal(error, null);
  assert.equal(times(shown, 'Answer y or n.'), 2);
});

for (const [title, lines] of [
  ['n', ['what', 'n']],
  ['an empty line', ['what', '']],
  ['the end of the input', ['what']],
] as const)
  test(`after an answer that is not understood, ${title} is a no: nothing is changed`, async (t) => {
    const questions: readonly (readonly [string, () => Promise<void>])[] = [
      ['not-confirmed', () => confirmKeys(5, { what: 'Keys' }, undefined)],
      ['point-of-no-return', () => confirmEnd('shop', { what: 'The end' }, undefined)],
      ['not-confirmed', () => confirmYes({ what: 'A change' }, 'Run it?', '--yes')],
    ];
    for (const [code, question] of questions) {
      const { error } = await typing(t, lines, question);
      assert.deepEqual([error?.code, error?.exit], [code, 1]);
      assert.match(error!.message, /^Not confirmed: nothing was/);
    }
  });
