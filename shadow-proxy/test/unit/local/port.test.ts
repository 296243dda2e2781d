/** Free ports: chosen apart by processes, and out of the way of outgoing connections. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { freePort, freePorts } from '../../../src/local/port.js';

const CHOOSE = `
  const { freePort } = await import(${JSON.stringify(new URL('../../../src/local/port.js', import.meta.url))});
  const ports = [];
  while (ports.length < 120) ports.push(await freePort());
  process.stdout.write(JSON.stringify(ports) + '\\n');
  process.stdin.resume();
`;

test('two processes never choose the same port while both run, and none chooses a port of outgoing connections', async (t) => {
  const chosen = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const child = spawn(process.execPath, ['--input-type=module', '--eval', CHOOSE], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      t.after(() => child.kill('SIGKILL'));
      return JSON.parse(String(((await once(child.stdout, 'data')) as [Buffer])[0])) as number[];
    }),
  );
  const owners = new Map<number, number>();
  for (const [process, ports] of chosen.entries())
    for (const port of ports) {
      assert.ok(port >= 10_000 && port < 20_000, String(port));
      assert.equal(owners.get(port) ?? process, process, `port ${port}`);
      owners.set(port, process);
    }
  // A process has 99 ports, but those in use; then they are given again, for nothing listens on them.
  for (const ports of chosen) {
    const { size } = new Set(ports);
    assert.ok(size > 90 && size <= 99, `${size} ports`);
  }
});

test('a port that is in use is not chosen, neither alone nor among adjoining ones', async (t) => {
  const first = await freePort();
  const server = createServer();
  t.after(() => server.close());
  await once(server.listen(first + 3, '127.0.0.1'), 'listening');
  const given: number[] = [first + 3];
  for (const count of [2, 4, 1, 1]) {
    const port = await freePorts(count);
    given.push(...Array.from({ length: count }, (_, i) => port + i));
  }
  assert.equal(new Set(given).size, given.length, given.join());
  // Two at once, too.
  const both = await Promise.all([freePort(), freePort()]);
  assert.notEqual(both[0], both[1]);
});
