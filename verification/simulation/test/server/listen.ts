/** A model behind a real port of this machine. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { ModelServer, type ModelOptions } from '../../server/server.js';
import type { Engine } from '../../server/state.js';
import { REAL } from './duel.js';

export interface Listening {
  readonly model: ModelServer;
  readonly port: number;
  stop(): Promise<void>;
}

export async function listen(engine: Engine, options: Omit<ModelOptions, 'port'> = {}): Promise<Listening> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket);
    const client = model.connect(
      (bytes) => socket.write(bytes),
      () => socket.destroySoon(),
      { host: '127.0.0.1', port: socket.remotePort! },
    );
    socket.on('data', (bytes) => client.receive(bytes));
    socket.on('end', () => {
      client.end();
      socket.end();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      client.reset();
      sockets.delete(socket);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const model = new ModelServer(engine, REAL, { ...options, port });
  return {
    model,
    port,
    async stop() {
      model.stopTimers();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
