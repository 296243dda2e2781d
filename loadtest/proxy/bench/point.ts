/** The loads under which the peers are measured. Pure. */

export interface Point {
  /** Commands that each connection has in flight. */
  readonly pipeline: number;
  /** Number of connections. */
  readonly clients: number;
  /** Commands per second over all connections; null: as fast as replies come. */
  readonly rate: number | null;
}

/** The number of clients for figures and requirements that do not name one. */
export const CLIENTS = 50;

export const samePoint = (a: Point, b: Point): boolean =>
  a.pipeline === b.pipeline && a.clients === b.clients && a.rate === b.rate;

/** The key after a peer's name in docs/figures.json: `@16`, `@16,1000` with 1,000 clients, `@1 at 15000/s`. */
export const pointKey = ({ pipeline, clients, rate }: Point): string =>
  `@${pipeline}${clients === CLIENTS ? '' : `,${clients}`}${rate === null ? '' : ` at ${rate}/s`}`;

/** Reads a key of `pointKey` with a peer's name before it; null if the text is no such key. */
export function parsePointKey(key: string): (Point & { readonly peer: string }) | null {
  const [, peer, pipeline, clients, rate] = /^([a-z0-9-]+)@(\d+)(?:,(\d+))?(?: at (\d+)\/s)?$/.exec(key) ?? [];
  return peer === undefined
    ? null
    : { peer, pipeline: Number(pipeline), clients: Number(clients ?? CLIENTS), rate: rate ? Number(rate) : null };
}

/** Points with the same number of clients, the fewest first. */
export function byClients(points: readonly Point[]): Point[][] {
  const numbers = [...new Set(points.map(({ clients }) => clients))].sort((a, b) => a - b);
  return numbers.map((clients) => points.filter((point) => point.clients === clients));
}

/** All loads of a run: every depth with every number of clients, and the load at a fixed rate. */
export function pointsOf(pipelines: readonly number[], clients: readonly number[], rate: number): Point[] {
  const closed = clients.flatMap((count) => pipelines.map((pipeline) => ({ pipeline, clients: count, rate: null })));
  return rate === 0 ? closed : [...closed, { pipeline: 1, clients: CLIENTS, rate }];
}
