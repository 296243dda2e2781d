/**
 * The hosts' network: a namespace for each, one for the controller with the bridge, a veth between. Nothing leads
 * outside.
 */
import { run } from '../run.js';

const NET = '10.77.0';

export class Network {
  /** Where Ansible, ssh and the operator's commands run. */
  readonly control: string;

  constructor(
    private readonly prefix: string,
    private readonly log: string,
  ) {
    this.control = `${prefix}-control`;
  }

  /** The controller's address. */
  readonly gateway = `${NET}.1`;

  namespace = (index: number): string => `${this.prefix}-${index}`;
  address = (index: number): string => `${NET}.${10 + index}`;

  async up(): Promise<void> {
    await this.#ip('netns', 'add', this.control);
    await this.#inControl('link', 'set', 'lo', 'up');
    await this.#inControl('link', 'add', 'br0', 'type', 'bridge');
    await this.#inControl('addr', 'add', `${NET}.1/24`, 'dev', 'br0');
    await this.#inControl('link', 'set', 'br0', 'up');
  }

  /** The namespace of one host, on the bridge. */
  async add(index: number): Promise<void> {
    const name = this.namespace(index);
    await this.#ip('netns', 'add', name);
    await this.#inControl('link', 'add', `v${index}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
    await this.#inControl('link', 'set', `v${index}`, 'master', 'br0', 'up');
    await this.#ip('-n', name, 'link', 'set', 'lo', 'up');
    await this.#ip('-n', name, 'addr', 'add', `${this.address(index)}/24`, 'dev', 'eth0');
    await this.#ip('-n', name, 'link', 'set', 'eth0', 'up');
    await this.#ip('-n', name, 'route', 'add', 'default', 'via', `${NET}.1`);
  }

  /** Takes a host's link away, or gives it back. */
  async link(index: number, state: 'up' | 'down'): Promise<void> {
    await this.#inControl('link', 'set', `v${index}`, state);
  }

  /** A command as it runs in the controller's namespace. */
  inControl = (command: readonly string[]): string[] => ['ip', 'netns', 'exec', this.control, ...command];

  #ip = (...args: string[]): Promise<unknown> => run(['ip', ...args], { log: this.log });
  #inControl = (...args: string[]): Promise<unknown> => this.#ip('-n', this.control, ...args);
}
