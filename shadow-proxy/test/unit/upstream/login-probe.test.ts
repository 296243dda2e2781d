/**
 * The question whether clients must log in. At a server that hangs no client waits longer than for the server, and the
 * kit's own login is sent behind the answer.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reply } from '../../../src/resp/decode.js';
import type { Argument } from '../../../src/resp/encode.js';
import type { Connection } from '../../../src/upstream/connection.js';
import { LoginProbe } from '../../../src/upstream/login-probe.js';

/** A server that accepts connections and never answers: what waits for it fails when its connection is destroyed. */
function hanging(): { readonly probe: LoginProbe; opened(): number } {
  let opened = 0;
  const connect = (): Promise<Connection> => {
    opened++;
    let fail: (problem: Error) => void;
    const answers = new Promise<never>((_, reject) => (fail = reject));
    return Promise.resolve({
      askAll: () => answers,
      attachLost: () => undefined,
      destroy: () => fail(new Error('destroyed')),
    } as unknown as Connection);
  };
  const context = { connect, probeAuth: () => Promise.resolve(false), name: 'kit', credentials: () => undefined };
  return { probe: new LoginProbe(context), opened: () => opened };
}

test('a question that waits for another one fails with it where the server is considered down, and is not asked', async () => {
  const { probe, opened } = hanging();
  const first = probe.needsPassword();
  await Promise.resolve();
  const behind = probe.needsPassword();
  assert.notEqual(first, behind);
  await new Promise(setImmediate);
  probe.close();
  await assert.rejects(first, /destroyed/);
  await assert.rejects(behind, /the server is considered down/);
  assert.equal(opened(), 1);
});

const DONE: Reply = { type: '+', data: Buffer.from('OK'), items: null };

test('the login of the kit is sent behind the answers, and only the next question waits for it', async () => {
  const sent: string[] = [];
  const answers: (() => void)[] = [];
  const answered = (commands: readonly (readonly Argument[])[]): Promise<Reply[]> => {
    sent.push(commands.map((command) => command.join(' ')).join(', '));
    return new Promise((resolve) => answers.push(() => resolve(commands.map(() => DONE))));
  };
  const connection = {
    askAll: answered,
    ask: async (...command: Argument[]) => (await answered([command]))[0],
    attachLost: () => undefined,
  } as unknown as Connection;
  const probe = new LoginProbe({
    connect: () => Promise.resolve(connection),
    probeAuth: () => Promise.reject(new Error('not asked')),
    name: 'kit',
    credentials: () => ({ username: 'kit', password: 'pw' }),
  });
  const first = probe.needsPassword();
  await new Promise(setImmediate);
  const second = probe.needsPassword();
  assert.deepEqual(sent, ['RESET, PING']);
  answers.shift()!();
  assert.equal(await first, false);
  await new Promise(setImmediate);
  assert.deepEqual(sent, ['RESET, PING', 'HELLO 2 AUTH kit pw SETNAME kit']);
  answers.shift()!();
  await new Promise(setImmediate);
  assert.deepEqual(sent.slice(2), ['RESET, PING']);
  answers.shift()!();
  assert.equal(await second, false);
});
