/**
 * A fault that could be made by hand in one line of the product, and the tests that must notice it.
 *
 * The files of `verification/mutants/faults` list them; `npm run mutants -- --faults` puts in one at a time and runs
 * its tests.
 */
import ts from 'typescript';

export interface Fault {
  /** Unique; says what is wrong: `flip-does-not-wait-for-mirror`. */
  readonly id: string;
  /** From the root of the repository: `shadow-proxy/src/stages/flip.ts`. */
  readonly file: string;
  /** Text that occurs exactly once in the file. */
  readonly from: string;
  /** The faulty text in its place. It must parse; its types need not hold. */
  readonly to: string;
  /** Parts of paths of test files, such as `unit/stages/flip`, one of which must fail. */
  readonly tests: readonly string[];
  /** Why no test can notice it, in one sentence; only where the faulty program does the same as the right one. */
  readonly survives?: string;
  /** Why no simulated run can notice it, in one sentence: its tests are all that shows it. */
  readonly unseen?: string;
  /** The profile whose simulated runs notice it: only these are made. Absent: all in which its line runs. */
  readonly profile?: string;
  /** The kept program that notices it, without `.test.ts`: it is run in place of random runs. */
  readonly kept?: string;
}

const SRC = 'shadow-proxy/src/';

/** The folder of `shadow-proxy/src` that a fault is in. */
export const roomOf = ({ file }: Pick<Fault, 'file'>): string =>
  file.startsWith(SRC) ? file.slice(SRC.length).split('/')[0]! : file.split('/')[0]!;

/** The test files that a fault names, in the order of its list. */
export const testsOf = ({ tests }: Pick<Fault, 'tests'>, files: readonly string[]): readonly string[] => [
  ...new Set(tests.flatMap((part) => files.filter((file) => file.includes(part)))),
];

/** What is wrong with an entry of the list, in sentences; none where it can be tried. */
export function problemsOf(fault: Fault, source: string | null, files: readonly string[]): readonly string[] {
  if (source === null) return [`there is no ${fault.file}`];
  const times = source.split(fault.from).length - 1;
  return [
    ...(times === 1 ? [] : [`its "from" occurs ${times} times in ${fault.file}, not once`]),
    ...(fault.from === fault.to ? ['its "from" is its "to"'] : []),
    ...(fault.tests.length === 0 ? ['it names no test'] : []),
    ...fault.tests
      .filter((part) => !files.some((file) => file.includes(part)))
      .map((part) => `no test file has "${part}" in its path`),
    ...(times === 1 && !parses(fault, source) ? ['the faulty file does not parse'] : []),
  ];
}

/** The source with the fault in it. */
export const withFault = ({ from, to }: Fault, source: string): string => {
  const at = source.indexOf(from);
  return source.slice(0, at) + to + source.slice(at + from.length);
};

function parses(fault: Fault, source: string): boolean {
  const file = ts.createSourceFile(fault.file, withFault(fault, source), ts.ScriptTarget.ES2022);
  // Not in its type: what would need a whole program, which takes seconds, shows no more here.
  return (file as unknown as { readonly parseDiagnostics: readonly unknown[] }).parseDiagnostics.length === 0;
}
