/** A sorted set: scores by member, and the members in order as soon as a command asks for it. */

export interface Member {
  readonly member: string;
  readonly score: number;
}

/** The order of sorted sets: by score, then by bytes. */
const inOrder = (a: Member, b: Member): number =>
  a.score - b.score || (a.score === b.score ? (a.member < b.member ? -1 : 1) : a.score < b.score ? -1 : 1);

export class SortedSet {
  readonly scores: Map<string, number>;
  #ordered: Member[] | null = null;

  constructor(scores: Iterable<readonly [string, number]> = []) {
    this.scores = new Map(scores);
  }

  get size(): number {
    return this.scores.size;
  }

  set(member: string, score: number): void {
    this.scores.set(member, score);
    this.#ordered = null;
  }

  delete(member: string): boolean {
    this.#ordered = null;
    return this.scores.delete(member);
  }

  /** From the lowest; it must not be changed. */
  ordered(): readonly Member[] {
    this.#ordered ??= Array.from(this.scores, ([member, score]) => ({ member, score })).sort(inOrder);
    return this.#ordered;
  }
}
