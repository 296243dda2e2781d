/** What unit tests use of `node:test`: tests are kept, to be run one by one in this process for each mutant. */
import { mock, type MockTracker } from 'node:test';

type Body = (context: Context) => unknown;

interface Context {
  readonly name: string;
  readonly mock: MockTracker;
  after(hook: () => unknown): void;
  skip(): void;
  diagnostic(): void;
}

export interface Registered {
  /** The suites it is in, and its own name. */
  readonly name: string;
  readonly skipped: boolean;
  readonly body: Body;
}

const Tracker = mock.constructor as new () => MockTracker;
const registered: Registered[] = [];
let suites: readonly string[] = [];

/** What the files imported since the last call have registered. */
export const takeTests = (): readonly Registered[] => registered.splice(0);

export function test(name: string, ...rest: readonly unknown[]): void {
  const body = rest.at(-1) as Body;
  const skipped = rest.length > 1 && Boolean((rest[0] as { skip?: unknown }).skip);
  registered.push({ name: [...suites, name].join(' > '), skipped, body });
}

export function describe(name: string, body: () => void): void {
  const outer = suites;
  suites = [...suites, name];
  body();
  suites = outer;
}

export async function runBody({ name, body }: Registered): Promise<void> {
  const hooks: (() => unknown)[] = [];
  const tracker = new Tracker();
  try {
    await body({ name, mock: tracker, after: (hook) => hooks.push(hook), skip() {}, diagnostic() {} });
  } finally {
    tracker.reset();
    for (const hook of hooks) await hook();
  }
}
