/** The clients and the watcher of one drill: a process in the namespace of each place. */
import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Order } from './clients.js';
import type { Ack, Promotion } from './ledger.js';

const PROGRAM = fileURLToPath(new URL('clients.js', import.meta.url));

export class Crew {
  readonly #children: ChildProcess[] = [];
  #acks: Ack[] = [];
  #promotions: Promotion[] = [];

  /** @param namespace of the network that it runs in */
  send(namespace: string, order: Order): void {
    const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, PROGRAM], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    child.stdin.on('error', () => undefined);
    child.stdin.write(`${JSON.stringify(order)}\n`);
    createInterface({ input: child.stdout }).on('line', (line) => {
      for (const event of JSON.parse(line) as (Ack | Promotion)[]) {
        if ('client' in event) this.#acks.push(event);
        else this.#promotions.push(event);
      }
    });
    this.#children.push(child);
  }

  get acks(): readonly Ack[] {
    return this.#acks;
  }

  get promotions(): readonly Promotion[] {
    return this.#promotions.toSorted((a, b) => a.at - b.at);
  }

  /** The last acknowledgement of each client stays: the next round sees whether it is still there. */
  forget(): void {
    const last = new Map(this.#acks.map((ack) => [ack.client, ack]));
    this.#acks = [...last.values()];
    this.#promotions = this.promotions.slice(-1);
  }

  end(): void {
    for (const child of this.#children) child.stdin?.end();
  }
}
