/**
 * A thread of its own that sends a server PING after PING, and reports how long they took, and for how much of that
 * time the server was at work, at most: on a busy machine, the server may just not have had the processor.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

export interface Pings {
  readonly count: number;
  readonly median: number;
  readonly p99: number;
  readonly max: number;
  /** How long the server was at work while a PING waited, in ms: 99 % of them less, and the longest. */
  readonly busy99: number;
  readonly busy: number;
}

/** Probes until `stop` is called. */
export async function probing(server: {
  readonly port: number;
  readonly pid: number | undefined;
}): Promise<{ stop(): Promise<Pings> }> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { port: server.port, pid: server.pid } });
  await new Promise((resolve) => worker.once('message', resolve));
  return {
    stop: () =>
      new Promise((resolve) => {
        worker.once('message', (pings: Pings) => resolve(pings));
        worker.postMessage('stop');
      }),
  };
}

/** How long the process has had a processor, all its threads together, in ms (Linux). */
function processorMs(pid: number): number {
  let ns = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`))
    ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ', 1)[0]);
  return ns / 1e6;
}

if (!isMainThread) {
  const { port, pid } = workerData as { port: number; pid: number };
  const took: number[] = [];
  const busy: number[] = [];
  let [asked, stopped, before] = [0, false, 0];
  const socket = createConnection(port, '127.0.0.1');
  socket.setNoDelay(true);
  const ping = (): void => {
    before = processorMs(pid);
    asked = performance.now();
    socket.write('PING\r\n');
  };
  socket.on('connect', () => {
    parentPort!.postMessage('begun');
    ping();
  });
  socket.on('data', () => {
    const ms = performance.now() - asked;
    took.push(ms);
    busy.push(Math.min(ms, processorMs(pid) - before));
    if (!stopped) setTimeout(ping, 1);
  });
  parentPort!.on('message', () => {
    stopped = true;
    const at = (of: number[], share: number): number =>
      of.sort((a, b) => a - b)[Math.min(of.length - 1, Math.floor(of.length * share))] ?? 0;
    parentPort!.postMessage({
      count: took.length,
      median: at(took, 0.5),
      p99: at(took, 0.99),
      max: at(took, 1),
      busy99: at(busy, 0.99),
      busy: at(busy, 1),
    });
    parentPort!.close();
    socket.destroy();
  });
}
