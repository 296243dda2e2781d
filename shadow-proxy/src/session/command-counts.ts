/** Counts the commands of clients by command and workload, and those that spanned two authorities. */
import type { CommandSpec, CommandTable } from '../command/table.js';
import type { Router, Workload } from '../route/router.js';
import type { Counters } from '../telemetry/workload-counters.js';

export class CommandCounts {
  #operations = 0;
  #split = 0;
  #refused = 0;
  /** The counts, by workload and command; the last workload is that for keys of other shards. */
  readonly #counts: readonly Float64Array[];
  /** By workload. */
  readonly #secondWriterWrites: Float64Array;

  constructor(
    private readonly table: CommandTable,
    private readonly counters: Counters,
    { workloads }: Pick<Router, 'workloads'>,
  ) {
    this.#counts = Array.from({ length: workloads.length + 1 }, () => new Float64Array(table.all.length));
    this.#secondWriterWrites = new Float64Array(workloads.length + 1);
  }

  get operations(): number {
    return this.#operations;
  }

  /** Commands that spanned two authorities and were split. */
  get split(): number {
    return this.#split;
  }

  /** Commands that spanned two authorities and were refused. */
  get refused(): number {
    return this.#refused;
  }

  addSplit(): void {
    this.#split++;
  }

  addRefused(): void {
    this.#refused++;
  }

  /**
   * Writes that clients sent here although another region writes the workload. For a rewritten workload: checks that
   * found a plain key on the target.
   */
  secondWriterWrites({ index }: Workload): number {
    return this.#secondWriterWrites[index];
  }

  addSecondWriterWrite({ index }: Workload): void {
    this.#secondWriterWrites[index]++;
  }

  /** A split command was answered. It counts once; its parts are not counted. */
  answeredSplit(): void {
    this.#operations++;
  }

  /** A client's command was sent. */
  sent(spec: CommandSpec, workload: Workload): void {
    this.#operations++;
    const counters = this.counters.of(workload);
    if (spec.write) counters.writes++;
    else counters.reads++;
    this.#counts[workload.index][spec.id]++;
  }

  /** Commands of a workload by name. */
  byCommand(workload: Workload): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const spec of this.table.all) {
      const count = this.#counts[workload.index][spec.id];
      if (count > 0) counts[spec.name] = count;
    }
    return counts;
  }

  /**
   * Writes that were sent for clients so far, by command, with all subcommands together; and the number of scripts and
   * functions.
   */
  writes(): { readonly writes: Map<string, number>; readonly scripts: number } {
    const writes = new Map<string, number>();
    let scripts = 0;
    for (const spec of this.table.all) {
      const count = this.#counts.reduce((sum, counts) => sum + counts[spec.id], 0);
      const name = spec.name.split('|', 1)[0];
      if (spec.handling === 'script') scripts += count;
      else if (spec.write) writes.set(name, (writes.get(name) ?? 0) + count);
    }
    return { writes, scripts };
  }
}
