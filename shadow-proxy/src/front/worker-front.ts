/** A front in a worker thread (`thread.ts`): for TLS, or if the native module is missing. */
import { Worker } from 'node:worker_threads';
import type { Intake } from '../io/intake.js';
import { Connections } from './front-connections.js';
import { RING_BYTES, type Front, type FrontEvents, type ListenAt } from './front.js';
import { ringMemory } from './shared-ring.js';
import type { ServerOptions } from './tcp-server.js';
import type { FrontRequest, Report, ThreadData } from './thread.js';

export class WorkerFront implements Front {
  readonly #worker: Worker;
  readonly #connections: Connections;
  #listening: { resolve(): void; reject(problem: Error): void } | undefined;
  #closed: () => void = () => undefined;

  constructor(
    intake: Intake,
    server: ServerOptions,
    private readonly events: FrontEvents,
  ) {
    const memory = { out: ringMemory(RING_BYTES), in: ringMemory(RING_BYTES) };
    const data: ThreadData = { memory: { out: memory.in, in: memory.out }, server };
    this.#worker = new Worker(new URL('./thread.js', import.meta.url), { workerData: data });
    this.#connections = new Connections(memory, () => this.#post(null), intake, events);
    this.#worker.on('message', (report: Report) => this.#reported(report));
    // An error in the program ends the process, as on the sequencing thread.
    this.#worker.on('error', (problem) => {
      throw problem;
    });
    this.#connections.link.open();
  }

  async listen({ host, port, first }: ListenAt): Promise<void> {
    if (first !== null) await new Promise((resolve) => first.close(resolve));
    await new Promise<void>((resolve, reject) => {
      this.#listening = { resolve, reject };
      this.#post({ what: 'listen', host, port, shared: first === null });
    });
  }

  renew(server: Pick<ServerOptions, 'tls' | 'maxConnections'>): void {
    this.#post({ what: 'renew', server });
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#closed = resolve;
      this.#post({ what: 'close' });
    });
    await this.#worker.terminate();
    this.#connections.close();
  }

  #post(request: FrontRequest): void {
    this.#worker.postMessage(request);
  }

  #reported(report: Report): void {
    if (report === null) this.#connections.link.rung();
    else if (report.what === 'listening') this.#listening?.resolve();
    else if (report.what === 'failed')
      this.#listening?.reject(Object.assign(new Error(report.message), { code: report.code }));
    else if (report.what === 'closed') this.#closed();
    else if (report.what === 'refused') this.events.refused(report.problem, report.from);
    else this.events[report.what]();
  }
}
