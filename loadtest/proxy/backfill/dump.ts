/** Measures how fast a server can be read: one connection requests every key's DUMP, and discards it. */
import { connect } from 'node:net';
import { encodeCommand } from '../../../shadow-proxy/src/resp/encode.js';
import { FrameReader } from '../../../shadow-proxy/src/resp/frame-reader.js';

const BATCH = 1_000;

/** Resolves when every key's DUMP was answered; two batches of 1,000 are in flight at a time. */
export function dumpAll(port: number, keys: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const reader = new FrameReader();
    let [asked, answered] = [0, 0];
    const ask = (): void => {
      while (asked < keys.length && asked - answered <= BATCH) {
        socket.write(Buffer.concat(keys.slice(asked, asked + BATCH).map((key) => encodeCommand(['DUMP', key]))));
        asked = Math.min(keys.length, asked + BATCH);
      }
    };
    socket.once('error', reject);
    socket.once('connect', ask);
    socket.on('data', (chunk) => {
      reader.feed(chunk, 0, chunk.length);
      while (reader.next()) answered++;
      if (answered < keys.length) return ask();
      socket.destroy();
      resolve();
    });
  });
}
