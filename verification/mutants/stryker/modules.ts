/** What Stryker mutates: modules whose logic needs no server, so that their unit tests alone must hold it. */

export interface Group {
  /** Folders (with a slash at their end) and files below `shadow-proxy/src`. */
  readonly mutate: readonly string[];
  /** Folders or files of `shadow-proxy/test/unit` whose tests must notice. */
  readonly tests: readonly string[];
}

const inside = (folder: string, names: string): readonly string[] =>
  names.split(' ').map((name) => `${folder}/${name}`);

/** Each group is a run of its own, with its own tests only. */
export const GROUPS: Readonly<Record<string, Group>> = {
  // Of resp and compare, not the tests over random or large data: they take a second for each mutant.
  resp: { mutate: ['resp/'], tests: inside('resp', 'examples writer') },
  route: { mutate: ['route/'], tests: ['route/'] },
  // The tables that real servers have given, and what asks for them, are held by tests with real servers.
  command: {
    mutate: [
      ...inside('command', 'command.ts counting.ts counting-kind.ts effect.ts hidden-keys.ts keys.ts policy.ts'),
      ...inside('command', 'row.ts rows.ts rows/ ttl.ts ttl-argument.ts'),
    ],
    tests: ['command/'],
  },
  compare: {
    mutate: ['compare/'],
    tests: inside('compare', 'absence compare missing multiset-examples redact rules verdict wording'),
  },
  rdb: { mutate: ['copy/rdb/'], tests: ['rdb/', 'copy/'] },
  pipeline: { mutate: ['pipeline/key-locks.ts'], tests: inside('pipeline', 'key-locks reservations') },
  plan: { mutate: inside('plan', 'check.ts counters.ts endpoint.ts memory.ts overlap.ts owns.ts'), tests: ['plan/'] },
  script: { mutate: inside('script', 'text.ts values.ts frame-keys.ts repeatable.ts'), tests: ['script/'] },
  session: {
    mutate: inside('session', 'window.ts turn-budget.ts block-queue.ts'),
    tests: inside('session', 'window turn-budget block-queue'),
  },
  stages: {
    mutate: inside('stages', 'gates.ts bypass-watch.ts next-stage.ts counters-gate.ts'),
    tests: ['stages/'],
  },
  suspects: { mutate: ['suspects/deadlines.ts'], tests: ['suspects/'] },
  telemetry: {
    mutate: inside('telemetry', 'series.ts prefixes.ts evictions.ts'),
    tests: inside('telemetry', 'series prefixes evictions'),
  },
};
