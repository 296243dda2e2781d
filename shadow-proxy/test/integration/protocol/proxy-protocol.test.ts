/**
 * Clients behind load balancers: their addresses come in PROXY headers, whatever reads the sockets.
 *
 * Needs real sockets: PROXY headers, byte by byte, over TLS, and from a real HAProxy.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { frontThreads } from '../../../src/front/threads.js';
import { encodeCommand } from '../../../src/resp/encode.js';
import { startHaproxy, type Way } from '../../support/haproxy.js';
import { missing, needs } from '../../support/needs.js';
import { withRig, type Rig } from '../../support/rig.js';
import { makeCertificates, type Certificates } from '../../support/servers.js';
import { partsOf, until } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';
import { FOUR, tlv, v2 } from '../../unit/front/headers.js';

const withoutNative = await missing('native');
const withoutTls = await missing('openssl');
const certificates: Certificates = withoutTls ? { ca: '', cert: '', key: '' } : makeCertificates();
/** As many workers as Node allows here: one before 22.12. */
const { threads: workers } = frontThreads(2, 1, false);

const KINDS = [
  { name: "Node's sockets", sockets: 'node', threads: 0, tls: false, lacks: false },
  { name: 'front threads of Node', sockets: 'node', threads: workers, tls: false, lacks: false },
  { name: 'native sockets', sockets: 'auto', threads: 0, tls: false, lacks: withoutNative },
  { name: 'native front threads', sockets: 'auto', threads: 2, tls: false, lacks: withoutNative },
  { name: 'TLS', sockets: 'auto', threads: 0, tls: true, lacks: withoutTls },
  { name: 'TLS in front threads', sockets: 'auto', threads: workers, tls: true, lacks: withoutTls },
] as const;

const BALANCER = '127.0.0.1';
const V1 = Buffer.from('PROXY TCP4 203.0.113.9 198.51.100.1 50321 6379\r\n');
const V2 = v2(0x21, 0x11, Buffer.concat([FOUR, tlv(0x04, Buffer.alloc(300))]));
const PING = encodeCommand(['PING']);

for (const { name, lacks, tls, sockets, threads } of KINDS)
  describe(name, { skip: lacks }, () => {
    /** The rig's listener takes headers from 127.0.0.1 alone. */
    const rigOf = (
      mode: 'required' | 'optional',
      body: (rig: Rig, log: string[]) => Promise<void>,
      limits: Readonly<Record<string, number>> = {},
    ): Promise<void> => {
      const log: string[] = [];
      return withRig(
        {
          ...{ sockets, threads, limits },
          ...(tls && { listenTls: certificates }),
          shard: { proxyProtocol: { mode, from: [`${BALANCER}/32`] } },
          logged: (line) => void log.push(line),
        },
        (rig) => body(rig, log),
      );
    };
    const opened: Socket[] = [];
    const raw = async (port: number, from = BALANCER, host = BALANCER): Promise<Socket> => {
      const socket = connect({ port, host, localAddress: from, noDelay: true }).on('error', () => undefined);
      opened.push(socket);
      await once(socket, 'connect');
      return socket;
    };
    /** Goes on as a client of Redis, over TLS where the listener has it. */
    const asClient = async (socket: Socket): Promise<Wire> => {
      if (!tls) return Wire.over(socket);
      const options: ConnectionOptions = { socket, ca: readFileSync(certificates.ca) };
      const secure = connectTls(options).on('error', () => undefined);
      await once(secure, 'secureConnect');
      return Wire.over(secure);
    };
    const after = (t: TestContext): void => t.after(() => opened.splice(0).forEach((socket) => socket.destroy()));
    const addressOf = async (wire: Wire): Promise<string> =>
      / addr=(\S*) /.exec(await wire.ask('CLIENT', 'INFO'))?.[1] ?? 'none';
    const closedForHeader = (rig: Rig): number => rig.shard.snapshot().clientsClosed.header;

    test('behind HAProxy a client is at its own address', async (t) => {
      after(t);
      if (!(await needs(t, 'haproxy'))) return;
      await rigOf('required', async (rig, log) => {
        const check = 'check inter 100ms check-send-proxy';
        const ways: Way[] = [
          { host: BALANCER, server: `send-proxy ${check}` },
          { host: BALANCER, server: `send-proxy-v2 ${check}` },
          { host: '::1', server: 'send-proxy' },
          { host: '::1', server: 'send-proxy-v2' },
        ];
        const ports = await startHaproxy(t, rig.shard.port, ways);
        const clients = await Promise.all(
          ways.map(async ({ host }, i) => {
            const from = host === BALANCER ? `127.0.0.${i + 2}` : host;
            const socket = await raw(ports[i], from, host);
            const wire = await asClient(socket);
            const shown = host === BALANCER ? from : `[${from}]`;
            return { wire, address: `${shown}:${socket.localPort}` };
          }),
        );
        for (const { wire, address } of clients) assert.equal(await addressOf(wire), address);
        const [one, two, ...others] = clients;
        const list = await one.wire.ask('CLIENT', 'LIST');
        for (const { address } of clients) assert.ok(list.includes(` addr=${address} `), list);
        const value = 'v'.repeat(1_000_000);
        assert.equal(await two.wire.ask('SET', 'k', value), '+OK');
        assert.equal(await others[0].wire.ask('GET', 'k'), `$1000000\r\n${value}`);
        for (const { wire, address } of [two, ...others]) {
          assert.equal(await one.wire.ask('CLIENT', 'KILL', 'ADDR', address), ':1');
          await wire.closed;
        }
        // HAProxy has checked the port meanwhile.
        assert.equal(closedForHeader(rig), 0, log.join(''));
      });
    });

    test('a header may come byte by byte, with the first command or before it', async (t) => {
      after(t);
      await rigOf('required', async (rig) => {
        for (const header of [V1, V2]) {
          const slow = await raw(rig.shard.port);
          for (const byte of header) {
            slow.write(Buffer.from([byte]));
            await new Promise(setImmediate);
          }
          assert.equal(await addressOf(await asClient(slow)), '203.0.113.9:50321');
          const fast = await raw(rig.shard.port);
          fast.cork();
          fast.write(header);
          const wire = asClient(fast);
          process.nextTick(() => fast.uncork());
          assert.equal(await addressOf(await wire), '203.0.113.9:50321');
        }
        const local = await raw(rig.shard.port);
        local.write(v2(0x20, 0x00, Buffer.alloc(0)));
        assert.equal(await addressOf(await asClient(local)), `${BALANCER}:${local.localPort}`);
      });
    });

    /** What a connection that is closed was sent. */
    const closedWith = async (socket: Socket): Promise<string> => {
      let text = '';
      socket.on('data', (chunk) => (text += chunk.toString()));
      await new Promise<void>((resolve) => (socket.closed ? resolve() : socket.once('close', () => resolve())));
      return text;
    };

    test('a connection without its header is closed, refused by name, and runs no command', async (t) => {
      after(t);
      const wrong: readonly (readonly [problem: RegExp, bytes: Buffer, from?: string])[] = [
        [/does not begin with a PROXY header/, PING],
        [/does not begin with a PROXY header/, Buffer.from([0x16, 0x03, 0x01, 0x02])],
        [/the PROXY header is malformed/, Buffer.concat([Buffer.from('PROXY TCP4 x y 1 2\r\n'), PING])],
        [/the PROXY header is malformed/, Buffer.concat([v2(0x21, 0x12, FOUR), PING])],
        [/the PROXY header is too long/, Buffer.concat([v2(0x21, 0x11, Buffer.alloc(20_000)), PING])],
        [/the address is not in proxyProtocol\.from/, Buffer.concat([V1, PING]), '127.0.0.9'],
        [/the address is not in proxyProtocol\.from/, Buffer.alloc(0), '127.0.0.9'],
        [/did not arrive within limits\.loginMs/, V1.subarray(0, 20)],
        [/did not arrive within limits\.loginMs/, Buffer.alloc(0)],
      ];
      await rigOf(
        'required',
        async (rig, log) => {
          const flush = encodeCommand(['FLUSHALL']);
          const source = await rig.wire(rig.source);
          await source.ask('SET', 'kept', 'v');
          for (let round = 0; round < 2; round++)
            for (const [problem, bytes, from] of wrong) {
              const socket = await raw(rig.shard.port, from);
              const answer = closedWith(socket);
              // A server must not run what follows, either.
              socket.write(
                bytes.length > 0
                  ? Buffer.concat([bytes, problem.source.includes('arrive') ? Buffer.alloc(0) : flush])
                  : bytes,
              );
              assert.match(await answer, tls ? /^$/ : problem);
              await until(() => log.some((line) => problem.test(line)));
            }
          await until(() => closedForHeader(rig) === 2 * wrong.length);
          assert.equal(rig.shard.snapshot().clients, 0);
          assert.equal(await source.ask('GET', 'kept'), '$1\r\nv');
          const lines = log.filter((line) => line.includes('a connection was closed'));
          assert.equal(lines.length, 5, 'a line a minute for each problem');
          const outside = JSON.parse(lines.find((line) => line.includes('proxyProtocol.from'))!) as Record<
            string,
            unknown
          >;
          assert.deepEqual([outside.address, outside.others], ['127.0.0.9', 0]);
        },
        { loginMs: 150 },
      );
    });

    test('an optional header: clients without one are served, a foreign header is refused', async (t) => {
      after(t);
      await rigOf('optional', async (rig) => {
        for (const from of [BALANCER, '127.0.0.9']) {
          const socket = await raw(rig.shard.port, from);
          assert.equal(await addressOf(await asClient(socket)), `${from}:${socket.localPort}`);
        }
        const behind = await raw(rig.shard.port);
        behind.write(V2);
        assert.equal(await addressOf(await asClient(behind)), '203.0.113.9:50321');
        const foreign = await raw(rig.shard.port, '127.0.0.9');
        const answer = closedWith(foreign);
        foreign.write(Buffer.concat([V2, PING]));
        assert.match(await answer, tls ? /^$/ : /^-ERR shadow-proxy: the address is not in proxyProtocol\.from/);
        await until(() => closedForHeader(rig) === 1);
      });
    });

    test('failed logins count for the client, not for the load balancer', async (t) => {
      after(t);
      await rigOf('required', async (rig) => {
        const socket = await raw(rig.shard.port);
        socket.write(V1);
        const wire = await asClient(socket);
        for (let i = 0; i < 10; i++) assert.match(await wire.ask('AUTH', 'nobody', 'wrong'), /^-WRONGPASS/);
        const { failedLogins } = partsOf(rig.shard.shard).clients.limits;
        assert.equal(failedLogins.failed('203.0.113.9', 'nobody'), 1_000);
        assert.equal(failedLogins.failed(BALANCER, 'nobody'), 0);
        const [origin] = rig.shard.snapshot().clientErrorOrigins;
        assert.equal(origin.client, '203.0.113.9');
      });
    });

    test('a shard that stops waits for no header', async (t) => {
      after(t);
      await rigOf(
        'required',
        async (rig) => {
          const sockets = await Promise.all([raw(rig.shard.port), raw(rig.shard.port)]);
          sockets[0].write(V1.subarray(0, 9));
          const closed = sockets.map((socket) => closedWith(socket));
          await rig.shard.stop();
          assert.deepEqual(await Promise.all(closed), ['', '']);
          assert.equal(closedForHeader(rig), 0);
        },
        { loginMs: 3_600_000 },
      );
    });
  });
