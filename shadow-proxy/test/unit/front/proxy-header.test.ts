/** PROXY headers, versions 1 and 2, cut at each byte; and bytes that are none. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MAX_HEADER, readHeader, type Peer } from '../../../src/front/proxy-header.js';
import { block, FOUR, SIX, tlv, unixBlock, v2, V2_SIGNATURE } from './headers.js';

const v1 = (text: string): Buffer => Buffer.from(`PROXY ${text}\r\n`, 'latin1');
const TLVS = Buffer.concat([tlv(0x04, Buffer.alloc(5)), tlv(0xea, Buffer.from('\x01vpce-08d2bf15fac5001c9'))]);

const WHOLE: readonly (readonly [what: string, header: Buffer, peer: Peer | null])[] = [
  ['IPv4', v1('TCP4 192.0.2.1 203.0.113.7 56324 6379'), { address: '192.0.2.1', port: 56324 }],
  [
    'the longest IPv4',
    v1('TCP4 255.255.255.255 255.255.255.255 65535 65535'),
    { address: '255.255.255.255', port: 65535 },
  ],
  ['IPv6', v1('TCP6 2001:DB8:0:0:0:0:0:1 ::1 4000 6379'), { address: '2001:db8::1', port: 4000 }],
  ['UNKNOWN', v1('UNKNOWN'), null],
  ['UNKNOWN with the longest addresses', v1(`UNKNOWN ${'ffff:f...f:ffff '.repeat(2)}65535 65535`), null],
  ['version 2, IPv4', v2(0x21, 0x11, FOUR), { address: '203.0.113.9', port: 50_321 }],
  ['version 2, IPv6', v2(0x21, 0x21, SIX), { address: '2001:db8::1f', port: 443 }],
  [
    'version 2, a Unix socket',
    v2(0x21, 0x31, unixBlock('/run/app one.sock')),
    { address: '/run/app\\x20one.sock', port: 0 },
  ],
  ['version 2, an abstract socket', v2(0x21, 0x31, unixBlock('\0app')), { address: '@app', port: 0 }],
  ['version 2, a Unix socket without a name', v2(0x21, 0x31, unixBlock('')), null],
  ['version 2, with TLVs', v2(0x21, 0x11, Buffer.concat([FOUR, TLVS])), { address: '203.0.113.9', port: 50_321 }],
  ['version 2, without a family', v2(0x21, 0x00, TLVS), null],
  ['version 2, LOCAL', v2(0x20, 0x00, Buffer.alloc(0)), null],
  ['version 2, LOCAL with addresses', v2(0x20, 0x11, FOUR), null],
  [
    'version 2, the longest',
    v2(0x21, 0x11, Buffer.concat([FOUR, tlv(0x04, Buffer.alloc(MAX_HEADER - 16 - 12 - 3))])),
    { address: '203.0.113.9', port: 50_321 },
  ],
];

describe('a header is read when its last byte is there, and no byte behind it', () => {
  for (const [what, header, peer] of WHOLE)
    test(what, () => {
      const cuts = header.length > 1_000 ? [1, 15, 16, 17, 30, header.length - 1] : header.keys();
      for (const cut of cuts)
        assert.deepEqual(readHeader(header.subarray(0, cut)), { is: 'unfinished' }, `cut at ${cut}`);
      for (const behind of ['', '*1\r\n', '\r\n', 'PROXY '])
        assert.deepEqual(readHeader(Buffer.concat([header, Buffer.from(behind)])), {
          is: 'whole',
          length: header.length,
          peer,
        });
    });
});

describe('bytes that begin as a header and are none', () => {
  const broken: readonly (readonly [what: string, bytes: Buffer])[] = [
    ['a line feed alone', Buffer.from('PROXY TCP4 192.0.2.1 203.0.113.7 1 2\n')],
    ['a field too few', v1('TCP4 192.0.2.1 203.0.113.7 56324')],
    ['a field too many', v1('TCP4 192.0.2.1 203.0.113.7 1 2 3')],
    ['two spaces', v1('TCP4  192.0.2.1 203.0.113.7 1 2')],
    ['an unknown family', v1('TCP5 192.0.2.1 203.0.113.7 1 2')],
    ['no family', v1('')],
    ['an address of the other family', v1('TCP4 ::1 203.0.113.7 1 2')],
    ['an IPv6 address with a zone', v1('TCP6 fe80::1%eth0 ::1 1 2')],
    ['a host name', v1('TCP4 localhost 203.0.113.7 1 2')],
    ['a wrong destination', v1('TCP4 192.0.2.1 203.0.113 1 2')],
    ['a port that is too high', v1('TCP4 192.0.2.1 203.0.113.7 65536 2')],
    ['a port with a zero in front', v1('TCP4 192.0.2.1 203.0.113.7 01 2')],
    ['a port that is none', v1('TCP4 192.0.2.1 203.0.113.7 -1 2')],
    ['another word', Buffer.from('PROXYING me\r\n')],
    ['a command on the same line', v1('TCP4 192.0.2.1 203.0.113.7 1 2\nFLUSHALL')],
    ['version 1 in version 2', v2(0x11, 0x11, FOUR)],
    ['an unknown command', v2(0x22, 0x11, FOUR)],
    ['an unknown family', v2(0x21, 0x41, FOUR)],
    ['datagrams', v2(0x21, 0x12, FOUR)],
    ['addresses that are cut', v2(0x21, 0x11, FOUR.subarray(1))],
    ['IPv6 in the room of IPv4', v2(0x21, 0x21, FOUR)],
    ['a Unix socket in the room of IPv6', v2(0x21, 0x31, SIX)],
  ];
  for (const [what, bytes] of broken) test(`${what}: malformed`, () => assert.equal(readHeader(bytes).is, 'malformed'));

  test('a line without an end is too long from its 107th byte on', () => {
    const line = Buffer.from(`PROXY UNKNOWN ${'x'.repeat(200)}`);
    assert.equal(readHeader(line.subarray(0, 106)).is, 'unfinished');
    assert.equal(readHeader(line.subarray(0, 107)).is, 'oversized');
    const ends = Buffer.from(line);
    ends.write('\r\n', 106);
    assert.equal(readHeader(ends).is, 'oversized');
  });

  test('version 2 is too long by what its length says, before it has come', () => {
    const header = v2(0x21, 0x11, Buffer.alloc(MAX_HEADER - 16 + 1));
    assert.equal(readHeader(header.subarray(0, 16)).is, 'oversized');
    assert.equal(readHeader(v2(0x20, 0x00, Buffer.alloc(65_535)).subarray(0, 16)).is, 'oversized');
  });
});

test('what clients of Redis send first is no header', () => {
  for (const text of [
    '*1\r\n$4\r\nPING\r\n',
    'PING\r\n',
    '\r\nPING\r\n',
    '\r\n\r\n\0PING',
    'PRO\r\n',
    'proxy TCP4',
    '\x16\x03\x01',
  ])
    assert.equal(readHeader(Buffer.from(text, 'latin1')).is, 'absent', JSON.stringify(text));
  const nearly = Buffer.concat([V2_SIGNATURE.subarray(0, 11), Buffer.from('!')]);
  assert.equal(readHeader(nearly).is, 'absent');
});

test('one address has one text, however it is written', () => {
  const texts = ['2001:db8::a', '2001:DB8::000A', '2001:db8:0:0:0:0:0:a'];
  const read = texts.map((text) => readHeader(v1(`TCP6 ${text} ::1 1 2`)));
  const bytes = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a];
  read.push(readHeader(v2(0x21, 0x21, block(bytes, bytes, 1, 2))));
  for (const header of read)
    assert.deepEqual(header.is === 'whole' && header.peer, { address: '2001:db8::a', port: 1 });
});
