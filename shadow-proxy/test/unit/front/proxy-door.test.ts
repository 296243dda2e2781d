/** The door of a listener with PROXY headers, without TLS: who is admitted, as whom, and with which bytes. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { ProxyDoor } from '../../../src/front/proxy-door.js';
import type { ClientSocket } from '../../../src/io/client-socket.js';
import type { Take } from '../../../src/io/intake.js';
import { useWorld } from '../../../src/io/world.js';
import type { ProxyProtocol } from '../../../src/plan/endpoint.js';
import { OtherWorld } from '../../support/other-world.js';
import { FOUR, tlv, unixBlock, v2 } from './headers.js';

const BALANCER = '10.0.0.7';
const DEADLINE_MS = 5_000;
const COMMAND = '*1\r\n$4\r\nPING\r\n';
const V1 = Buffer.from('PROXY TCP4 203.0.113.9 198.51.100.1 50321 6379\r\n');
const V2 = v2(0x21, 0x11, Buffer.concat([FOUR, tlv(0x04, Buffer.alloc(7))]));

let world: OtherWorld;

class Incoming {
  readonly socket: ClientSocket;
  readonly refusals: string[] = [];
  /** What the session got; null before it is admitted. */
  got: string | null = null;
  readonly door: ProxyDoor;
  #take: Take = () => undefined;

  constructor(mode: ProxyProtocol['mode'], remoteAddress = BALANCER) {
    const socket = Object.assign(new EventEmitter(), { remoteAddress, remotePort: 999, destroyed: false });
    Object.assign(socket, {
      destroy: () => {
        socket.destroyed = true;
        socket.emit('close');
      },
    });
    this.socket = socket as unknown as ClientSocket;
    this.door = new ProxyDoor(
      { mode, from: ['10.0.0.0/24'] },
      () => DEADLINE_MS,
      (_socket, problem, from) => this.refusals.push(`${problem} ${from}`),
    );
    this.door.enter(
      (take) => {
        this.#take = take;
        return this.socket;
      },
      (connect) => {
        assert.equal(this.got, null, 'admitted once');
        this.got = '';
        connect((bytes, start, end) => (this.got += bytes.toString('latin1', start, end)));
      },
    );
  }

  sends(bytes: Buffer | string): this {
    // As from a buffer that other clients share.
    const chunk = Buffer.concat([Buffer.from('??'), Buffer.from(bytes), Buffer.from('??')]);
    this.#take(chunk, 2, chunk.length - 2);
    return this;
  }

  emits(event: 'end' | 'close'): this {
    (this.socket as unknown as EventEmitter).emit(event);
    return this;
  }

  get address(): string {
    return `${this.socket.remoteAddress} ${this.socket.remotePort}`;
  }
}

const CLIENT = '203.0.113.9 50321';

describe('PROXY headers at a listener', () => {
  beforeEach(() => useWorld((world = new OtherWorld())));
  afterEach(() => useWorld(null));

  for (const mode of ['required', 'optional'] as const)
    describe(mode, () => {
      for (const [version, header] of [
        [1, V1],
        [2, V2],
      ] as const) {
        test(`version ${version}, cut at each byte: the address is the header's, the command is whole`, () => {
          const sent = Buffer.concat([header, Buffer.from(COMMAND)]);
          for (let cut = 1; cut < sent.length; cut++) {
            const client = new Incoming(mode);
            client.sends(sent.subarray(0, cut)).sends(sent.subarray(cut));
            assert.deepEqual([client.got, client.address, client.refusals], [COMMAND, CLIENT, []], `cut at ${cut}`);
          }
        });

        test(`version ${version}, byte by byte`, () => {
          const client = new Incoming(mode);
          for (const byte of Buffer.concat([header, Buffer.from(COMMAND)])) client.sends(Buffer.from([byte]));
          assert.deepEqual([client.got, client.address, client.refusals], [COMMAND, CLIENT, []]);
        });

        test(`version ${version} that stops at any byte is closed at the deadline, and nothing of it is a command`, async () => {
          const clients = Array.from(header.keys())
            .slice(1)
            .map((cut) => new Incoming(mode).sends(header.subarray(0, cut)));
          await world.advance(DEADLINE_MS - 1);
          for (const { refusals } of clients) assert.deepEqual(refusals, []);
          await world.advance(1);
          for (const client of clients) {
            assert.deepEqual(client.refusals, [`late ${BALANCER}`]);
            client.sends(header).sends(COMMAND);
            assert.ok(!client.got, 'nothing more is taken');
          }
        });

        test(`version ${version} that ends with its connection is reported once`, () => {
          for (const how of ['end', 'close'] as const) {
            const client = new Incoming(mode).sends(header.subarray(0, 12)).emits(how).emits('close');
            assert.deepEqual(client.refusals, [`cut ${BALANCER}`], how);
          }
        });

        test(`version ${version} from outside the networks is refused`, () => {
          const client = new Incoming(mode, '10.0.1.7').sends(header).sends(COMMAND);
          assert.deepEqual([client.refusals, client.got ?? ''], [['outside 10.0.1.7'], '']);
          assert.equal(client.address, '10.0.1.7 999');
        });
      }

      test('a wrong header is refused, and what follows it is no command', () => {
        for (const [bytes, problem] of [
          ['PROXY TCP4 a b 1 2\r\n', 'malformed'],
          [v2(0x21, 0x13, FOUR), 'malformed'],
          [`PROXY UNKNOWN ${'x'.repeat(200)}\r\n`, 'oversized'],
        ] as const) {
          const client = new Incoming(mode)
            .sends(Buffer.concat([Buffer.from(bytes), Buffer.from(COMMAND)]))
            .sends(COMMAND);
          assert.deepEqual([client.refusals, client.got ?? ''], [[`${problem} ${BALANCER}`], '']);
        }
      });

      test('a header that names no client leaves the address of the socket', () => {
        for (const header of ['PROXY UNKNOWN\r\n', v2(0x20, 0x00, Buffer.alloc(0)), v2(0x21, 0x00, Buffer.alloc(0))]) {
          const client = new Incoming(mode).sends(header).sends(COMMAND);
          assert.deepEqual([client.got, client.address, client.refusals], [COMMAND, `${BALANCER} 999`, []]);
        }
      });

      test('a client at a Unix socket has its path', () => {
        const client = new Incoming(mode).sends(v2(0x21, 0x31, unixBlock('/run/app.sock')));
        assert.deepEqual([client.got, client.address], ['', '/run/app.sock 0']);
      });

      test('only the first header counts: a second one is a command of the client', () => {
        const client = new Incoming(mode).sends(V1).sends('PROXY TCP4 192.0.2.1 203.0.113.7 1 2\r\n');
        assert.equal(client.got, 'PROXY TCP4 192.0.2.1 203.0.113.7 1 2\r\n');
        assert.equal(client.address, CLIENT);
      });

      test('a connection that was admitted has no deadline', async () => {
        const client = new Incoming(mode).sends(V2);
        await world.advance(10 * DEADLINE_MS);
        assert.equal(client.sends(COMMAND).got, COMMAND);
      });
    });

  describe('required: no client is admitted before its header', () => {
    test('bytes that are no header are refused at once', () => {
      const client = new Incoming('required').sends(COMMAND);
      assert.deepEqual([client.refusals, client.got], [[`missing ${BALANCER}`], null]);
    });

    test('one that sends nothing is refused at the deadline', async () => {
      const client = new Incoming('required');
      await world.advance(DEADLINE_MS);
      assert.deepEqual([client.refusals, client.got], [[`late ${BALANCER}`], null]);
    });

    test('one from outside the networks is refused before it sends anything', () => {
      assert.deepEqual(new Incoming('required', '10.0.1.1').refusals, ['outside 10.0.1.1']);
    });

    test('a check of the port, which sends nothing, is closed without a word', async () => {
      const client = new Incoming('required').emits('end');
      assert.equal(client.socket.destroyed, true);
      await world.advance(DEADLINE_MS);
      assert.deepEqual(client.refusals, []);
    });

    test('a listener that closes also closes those who have sent no header', async () => {
      const [waits, is] = [new Incoming('required').sends('PRO'), new Incoming('required').sends(V1)];
      waits.door.close();
      is.door.close();
      assert.deepEqual([waits.socket.destroyed, is.socket.destroyed], [true, false]);
      await world.advance(DEADLINE_MS);
      assert.deepEqual(waits.refusals, []);
    });
  });

  describe('optional: a client without a header is one, too', () => {
    for (const from of [BALANCER, '192.0.2.44'])
      test(`from ${from}`, async () => {
        const client = new Incoming('optional', from);
        assert.equal(client.got, '', 'admitted at once');
        await world.advance(10 * DEADLINE_MS);
        client.sends('\r\n').sends('\r\n').sends(COMMAND).sends(COMMAND);
        assert.deepEqual([client.got, client.address], [`\r\n\r\n${COMMAND}${COMMAND}`, `${from} 999`]);
        assert.deepEqual(client.refusals, []);
      });

    test('one that ends without having sent anything is left to its session', () => {
      const client = new Incoming('optional').emits('end');
      assert.deepEqual([client.refusals, client.socket.destroyed], [[], false]);
    });
  });

  test('an IPv4 address over IPv6 is in its IPv4 network', () => {
    const client = new Incoming('required', `::ffff:${BALANCER}`).sends(V1);
    assert.deepEqual([client.got, client.refusals], ['', []]);
  });
});
