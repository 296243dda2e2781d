/** What clients sent and what struck, as a list: a run can replay it, and a finding is shrunk with it. */
import type { Command } from '../clients/draw.js';
import type { NetworkOptions } from '../world/network.js';
import type { Fault } from './profiles.js';

/** What a client sends in one write. */
export interface Sent {
  /** Milliseconds since the round began. */
  readonly at: number;
  readonly client: string;
  readonly commands: readonly Command[];
}

export interface Strike {
  readonly at: number;
  readonly fault: Fault;
  /** Of what it draws. */
  readonly seed: number;
  /** What it did. */
  readonly what: string;
}

export type Action = Sent | Strike;

/** Between two rounds everything comes to rest. */
export type Round = readonly Action[];

export interface Program {
  readonly seed: number;
  readonly network: NetworkOptions;
  readonly rounds: readonly Round[];
}

export const isSent = (action: Action): action is Sent => 'client' in action;
export const isStrike = (action: Action): action is Strike => 'fault' in action;

/** Of a longer run, only the last rounds are kept. */
const KEPT_ROUNDS = 4;

export class Recorder {
  readonly rounds: Action[][] = [];
  #began = 0;

  begin(now: number): void {
    this.#began = now;
    this.rounds.push([]);
    if (this.rounds.length > KEPT_ROUNDS) this.rounds.shift();
  }

  sent(now: number, client: string, commands: readonly Command[]): void {
    this.rounds.at(-1)!.push({ at: now - this.#began, client, commands });
  }

  struck(now: number, strike: Omit<Strike, 'at'>): void {
    this.rounds.at(-1)!.push({ at: now - this.#began, ...strike });
  }
}

/** What is to be sent once more, by client. */
export class Replayed {
  readonly #left = new Map<string, Sent[]>();

  constructor(
    sent: readonly Sent[],
    private readonly began: number,
  ) {
    for (const each of sent) {
      const { client } = each;
      this.#left.set(client, [...(this.#left.get(client) ?? []), each]);
    }
  }

  get isEmpty(): boolean {
    return [...this.#left.values()].every(({ length }) => length === 0);
  }

  /** What the client sends next, where its time has come. */
  next(client: string, now: number): readonly Command[] {
    const left = this.#left.get(client);
    if (left === undefined || left.length === 0 || this.began + left[0].at > now) return [];
    const [{ at }] = left;
    const commands: Command[] = [];
    while (left[0]?.at === at) commands.push(...left.shift()!.commands);
    return commands;
  }
}

/** As a person reads it. */
export function linesOf({ seed, network, rounds }: Program): string[] {
  const late = network.lateShare > 0 || network.splitShare > 0 ? '' : '; nothing arrives late or in pieces';
  const lines = [`program of seed ${seed}${late}:`];
  for (const [i, round] of rounds.entries()) {
    if (i > 0) lines.push('              everything comes to rest');
    for (const action of round) {
      const at = `${action.at.toFixed(3).padStart(12)}  `;
      if (isSent(action))
        for (const { args } of action.commands) lines.push(`${at}${action.client.padEnd(14)}${args.join(' ')}`);
      else lines.push(`${at}${'fault'.padEnd(14)}${action.fault}: ${action.what}`);
    }
  }
  return lines;
}
