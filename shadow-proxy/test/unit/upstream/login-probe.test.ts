/** The question whether clients must log in, at a server that hangs: no client waits longer than for the server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
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
