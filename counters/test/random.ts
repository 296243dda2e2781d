/**
 * Random histories on two real active-active nodes: processes count, end, restart and join new regions, links are cut
 * and resync in every way, nodes restart. After each resync, once every living writer has written again, every process
 * must see exactly what was acknowledged.
 *
 * One thing cannot be had, and the model says exactly when: what a process counted during a cut is on one node only
 * once the process has ended; it may be lost where that node is restarted before the resync, even from its own files,
 * or where one direction resyncs fully and the other partially. Nothing is ever invented.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  ActivePair,
  otherSide,
  SIDES,
  type Resyncs,
  type RestartFrom,
  type Side,
} from '../../shadow-proxy/src/local/active-pair.js';
import type { PlainCounters } from '../src/index.js';
import { startProcess, type Process } from './support.js';

export type Step =
  | { readonly do: 'add'; readonly process: number; readonly amounts: readonly number[] }
  | { readonly do: 'cut' | 'check' }
  | { readonly do: 'rejoin'; readonly resyncs: Resyncs }
  | { readonly do: 'restart node'; readonly side: Side; readonly from: RestartFrom }
  | { readonly do: 'crash' | 'close' | 'reset'; readonly process: number }
  | { readonly do: 'join'; readonly side: Side; readonly region: string };

const PROCESSES = 4;
const process = fc.integer({ min: 0, max: PROCESSES - 1 });
const side = fc.constantFrom(...SIDES);
const kind = fc.constantFrom('partial' as const, 'full' as const);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant('add' as const),
      process,
      amounts: fc.array(
        fc.integer({ min: -50, max: 100 }).filter((n) => n !== 0),
        { minLength: 1, maxLength: 60 },
      ),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('cut' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('rejoin' as const), resyncs: fc.record({ a: kind, b: kind }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('restart node' as const),
      side,
      from: fc.constantFrom<RestartFrom>('rdb', 'aof', 'empty'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('crash' as const, 'close' as const), process }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('reset' as const), process }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('join' as const), side, region: fc.constantFrom('a', 'b', 'c', 'd') }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('check' as const) }) },
);

export const history = (steps: number): fc.Arbitrary<Step[]> => fc.array(step, { minLength: steps, maxLength: steps });

/** What one process counted, and what of it may be lost. */
interface Account {
  /** The writer's. */
  readonly id: string;
  readonly side: Side;
  /** What it added to the counter that only grows, and to the one that goes both ways. */
  grown: number;
  net: number;
  /** As much of `grown` is known to be on both nodes. */
  shared: number;
  alive: boolean;
  /** What it counted beyond `shared` may be lost. */
  atRisk: boolean;
}

interface Member {
  readonly process: Process;
  readonly plain: PlainCounters;
  readonly writer: string;
  readonly account: Account;
  readonly region: string;
}

/** Runs a history. */
export class Trial {
  #cut = false;
  /** Nodes that were restarted in this cut, from what. */
  #restarted: Partial<Record<Side, RestartFrom>> = {};
  /** What was taken off the counter that goes both ways. */
  #reset = 0;
  #members: Member[] = [];
  readonly #accounts: Account[] = [];

  private constructor(private readonly pair: ActivePair) {}

  /** @throws where an acknowledged increment is lost, or one is invented */
  static async run(steps: readonly Step[]): Promise<void> {
    const pair = await ActivePair.start({ backlogBytes: 4 << 20, appendonly: true });
    const trial = new Trial(pair);
    try {
      for (let i = 0; i < PROCESSES; i++) await trial.#join(SIDES[i % 2], SIDES[i % 2]);
      for (const each of steps) await trial.#step(each);
      await trial.#rejoin({ a: 'partial', b: 'partial' });
      await trial.#check();
    } finally {
      for (const { process } of trial.#members) process.crash();
      await pair.stop();
    }
  }

  async #step(step: Step): Promise<void> {
    switch (step.do) {
      case 'add':
        return this.#add(this.#chosen(step.process), step.amounts);
      case 'cut':
        return this.#cutLinks();
      case 'rejoin':
        return this.#rejoin(step.resyncs);
      case 'check':
        return this.#check();
      case 'reset':
        return this.#resetAll(this.#chosen(step.process));
      case 'restart node':
        return this.#restart(step.side, step.from);
      case 'join':
        return this.#join(step.side, step.region);
      case 'crash':
      case 'close':
        return this.#end(this.#chosen(step.process), step.do);
    }
  }

  #chosen(index: number): Member {
    return this.#members[index % this.#members.length];
  }

  async #add({ process: { counters }, plain, account }: Member, amounts: readonly number[]): Promise<void> {
    await Promise.all(
      amounts.map(async (amount) => {
        await Promise.all([
          counters.growOnly('grown').add(Math.abs(amount)),
          counters.upDown('net').add(amount),
          plain.add('plain', Math.abs(amount)),
        ]);
        account.grown += Math.abs(amount);
        account.net += amount;
      }),
    );
  }

  async #cutLinks(): Promise<void> {
    if (this.#cut) return;
    await this.#settle();
    await this.pair.cut();
    this.#cut = true;
    this.#restarted = {};
  }

  async #rejoin(wanted: Resyncs): Promise<void> {
    if (!this.#cut) return;
    const resyncs = await this.pair.rejoin(wanted);
    this.#cut = false;
    if (resyncs.a !== resyncs.b) this.#markAtRisk(() => true);
    await this.#check();
  }

  async #restart(side: Side, from: RestartFrom): Promise<void> {
    if (!this.#cut) await this.#settle();
    await this.pair.restart(side, from);
    if (!this.#cut) return this.#check();
    this.#markAtRisk((account) => account.side === side);
    if (from !== 'rdb' && this.#restarted[side] !== 'empty') this.#restarted[side] = from;
    // Then neither node has what was on both: a restart from an append-only file forgets what came from the other.
    for (const each of SIDES) {
      const isLost = this.#restarted[each] === 'empty' && this.#restarted[otherSide(each)] !== undefined;
      if (isLost) this.#markAtRisk((account) => account.side === each, 0);
    }
  }

  async #join(side: Side, region: string): Promise<void> {
    // A region has one node, and this machine not many processes.
    const isAtOtherNode = this.#members.some((each) => each.region === region && each.account.side !== side);
    if (isAtOtherNode || this.#members.length >= 2 * PROCESSES) return;
    // A name that nobody has any more is taken on: what it counted is the next one's.
    const taken = new Set(this.#members.filter((each) => each.region === region).map((each) => each.writer));
    const writer = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'].find((name) => !taken.has(name))!;
    const process = await startProcess(this.pair.nodes[side].port, { region, writer, refreshMs: 50 });
    const plain = process.counters.plain({ graceMs: 1000, tendMs: 20 });
    const account = { id: process.counters.id, side, grown: 0, net: 0, shared: 0, alive: true, atRisk: false };
    this.#accounts.push(account);
    this.#members.push({ process, plain, writer, account, region });
  }

  /** Ends a process; one must be left. */
  async #end(member: Member, how: 'crash' | 'close'): Promise<void> {
    if (this.#members.length === 1) return;
    this.#members = this.#members.filter((each) => each !== member);
    await member.process[how]();
    const { account } = member;
    account.alive = false;
    // It may not have written again since its node was restarted.
    const restarted = this.#cut && how === 'crash' ? this.#restarted[account.side] : undefined;
    if (restarted !== undefined)
      this.#markAtRisk(
        (each) => each === account,
        restarted === 'empty' && this.#restarted[otherSide(account.side)] !== undefined ? 0 : undefined,
      );
  }

  /** Only while all is seen: it is known then what is taken off. */
  async #resetAll({ process }: Member): Promise<void> {
    if (this.#cut || this.#hasRisk) return;
    await this.#check();
    this.#reset += await process.counters.upDown('net').reset();
    await this.#check();
  }

  get #hasRisk(): boolean {
    return this.#accounts.some(({ atRisk }) => atRisk);
  }

  #markAtRisk(which: (account: Account) => boolean, shared?: number): void {
    for (const account of this.#accounts) {
      if (account.alive || !which(account)) continue;
      account.shared = shared ?? account.shared;
      account.atRisk ||= account.grown > account.shared;
    }
  }

  async #settle(): Promise<void> {
    await this.pair.settle();
    for (const account of this.#accounts) if (!account.atRisk) account.shared = account.grown;
  }

  async #check(): Promise<void> {
    if (this.#cut) return;
    for (const { process } of this.#members) await process.counters.repair();
    await this.#settle();
    for (const { process, plain } of this.#members) await this.#checkOne(process, plain, process.counters.id);
    for (const side of SIDES) {
      const fresh = await startProcess(this.pair.nodes[side].port, { region: `reader-${side}`, refreshMs: 50 });
      await this.#checkOne(fresh, fresh.counters.plain({ tendMs: 0 }), `a new reader at ${side}`);
      await fresh.close();
    }
  }

  async #checkOne({ counters }: Process, plain: PlainCounters, who: string): Promise<void> {
    const sum = (of: (account: Account) => number): number =>
      this.#accounts.reduce((all, account) => all + of(account), 0);
    const most = sum(({ grown }) => grown);
    const least = sum(({ grown, shared, atRisk }) => (atRisk ? shared : grown));
    for (const [name, grown] of [
      ['grown', await counters.growOnly('grown').value()],
      ['plain', (await plain.look(['plain']))[0].value],
    ] as const) {
      const right = grown >= least && grown <= most;
      assert.ok(
        right,
        `${who} sees ${name} ${grown}, not ${least === most ? most : `${least} to ${most}`}${right ? '' : await this.#parts(name)}`,
      );
    }
    if (!this.#hasRisk) assert.equal(await counters.upDown('net').value(), sum(({ net }) => net) - this.#reset, who);
  }

  /** For a failure: what each writer counted, and what of it each node has. */
  async #parts(name: string): Promise<string> {
    const lines = this.#accounts.map(async ({ id, grown, shared, alive, atRisk }) => {
      const [a, b] = await Promise.all(SIDES.map((side) => this.pair.clients[side].get(`counters:{${name}}:${id}`)));
      const listed = await Promise.all(
        SIDES.map((side) => this.pair.clients[side].hget(`counters:@writers:{${id.split('.')[0]}}`, id)),
      );
      return `\n${id} ${alive ? 'alive' : 'dead'}: ${grown}, ${atRisk ? `at risk beyond ${shared}` : 'safe'}; a has ${a}, b has ${b}; listed ${listed.join()}`;
    });
    return (await Promise.all(lines)).join('');
  }
}
