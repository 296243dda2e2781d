/** A process of hostile clients. Its one argument is a JSON `AttackersTask`; it stops at a signal. */
import { connect, type Socket } from 'node:net';
import { encodeCommand } from '../../../shadow-proxy/src/resp/encode.js';
import { ATTACKS, type AttackContext } from './attacks.js';

export interface AttackersTask {
  readonly port: number;
  readonly password: string;
  readonly attack: string;
}

const task = JSON.parse(process.argv[2]) as AttackersTask;
const attack = ATTACKS.find(({ name }) => name === task.attack);
if (attack === undefined) throw new Error(`no attack ${task.attack}`);

let stopped = false;
let connections = 0;

/** @throws if the connection is refused */
async function open(): Promise<Socket> {
  const socket = connect(task.port, '127.0.0.1');
  socket.setNoDelay(true).resume();
  await new Promise<void>((resolve, reject) => socket.once('connect', () => resolve()).once('error', reject));
  connections++;
  socket.on('error', () => undefined);
  return socket;
}

const context: AttackContext = {
  get stopped() {
    return stopped;
  },
  connect: open,
  async login() {
    const socket = await open();
    socket.write(encodeCommand(['AUTH', task.password]));
    await new Promise<void>((resolve, reject) =>
      socket.once('data', () => resolve()).once('close', () => reject(new Error('closed'))),
    );
    return socket;
  },
};

process.once('message', () => (stopped = true));
process.once('disconnect', () => process.exit(1));
process.once('SIGINT', () => undefined); // Ctrl-C reaches the whole group; the parent decides
process.send!('ready');
await attack.run(context).catch(() => undefined);
// A task that has finished keeps its connection open.
while (!stopped) await new Promise((resolve) => setTimeout(resolve, 20));
process.send!({ connections }, () => process.exit(0));
