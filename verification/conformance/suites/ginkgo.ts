/** The cluster tests of go-redis, against nodes that run already. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConformanceError } from '../run/error.js';
import { runLimited } from '../run/program.js';
import type { Outcome, TestResult } from '../run/result.js';
import { NODE_PORTS } from './nodes.js';

/** What the tests set up themselves, and what is there instead. The tree is not changed: Go gets other texts. */
const GIVEN: Readonly<Record<string, readonly (readonly [theirs: RegExp, ours: string])[]>> = {
  'main_test.go': [
    [/ports: +\[\]string\{"16600".*\},/, `ports: strings.Split(os.Getenv("${NODE_PORTS}"), ","),`],
    [
      /if !RECluster \{\n(?=\t\tringShard1)/,
      'Expect(collectNodeInformation(ctx, cluster)).NotTo(HaveOccurred())\n\tif RECluster {\n',
    ],
    [/if !RECluster \{\n(?=\t\tExpect\(cluster\.Close)/, 'if RECluster {\n'],
  ],
  // Each of its tests waits until the cluster is whole: here that has no replicas.
  'export_test.go': [[/if len\(c\.Slaves\) < 3 \{/, 'if false {']],
};

/** Compiles the tests. @returns the program @throws {ConformanceError} */
export function buildGinkgo(source: string, out: string): string {
  const replaced: Record<string, string> = {};
  for (const [name, changes] of Object.entries(GIVEN)) {
    const file = join(source, name);
    const changed = join(out, name);
    writeFileSync(
      changed,
      changes.reduce((text, change) => withOurs(text, file, change), readFileSync(file, 'utf8')),
    );
    replaced[file] = changed;
  }
  const [overlay, program] = ['overlay.json', 'go-redis.test'].map((name) => join(out, name));
  writeFileSync(overlay, JSON.stringify({ Replace: replaced }));
  try {
    execFileSync('go', ['test', '-c', '-vet=off', `-overlay=${overlay}`, '-o', program, '.'], { cwd: source });
  } catch (problem) {
    throw new ConformanceError('USAGE', `go cannot compile the tests of ${source}: ${(problem as Error).message}`);
  }
  return program;
}

function withOurs(text: string, file: string, [theirs, ours]: readonly [RegExp, string]): string {
  if (theirs.test(text)) return text.replace(theirs, ours);
  throw new ConformanceError('USAGE', `${file} is not as in go-redis 9: nothing in it matches ${theirs.source}`);
}

export interface GinkgoRun {
  readonly program: string;
  readonly source: string;
  readonly ports: readonly number[];
  readonly log: string;
  /** Seconds for all of it. */
  readonly limit: number;
}

export async function runGinkgo({ program, source, ports, log, limit }: GinkgoRun): Promise<Outcome> {
  const results = `${log}.json`;
  const { code, timedOut } = await runLimited({
    command: program,
    args: [
      '-test.run=^TestGinkgoSuite$',
      '--ginkgo.focus-file=osscluster_test.go',
      `--ginkgo.json-report=${results}`,
      `--ginkgo.timeout=${Math.ceil(0.9 * limit)}s`,
      '--ginkgo.seed=1',
    ],
    cwd: source,
    env: { [NODE_PORTS]: ports.join(','), REDIS_VERSION: '7.0' },
    log: `${log}.log`,
    limitMs: limit * 1000,
  });
  if (existsSync(results)) return parseGinkgo(readFileSync(results, 'utf8'));
  return {
    tests: [],
    aborts: [],
    cutShort: timedOut ? `after the limit of ${limit} s` : `it wrote no results, exit code ${code}`,
  };
}

interface SpecReport {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeText: string;
  readonly LeafNodeType: string;
  readonly State: string;
  readonly Failure?: { readonly Message: string; readonly ForwardedPanic?: string };
}

/** Reads Ginkgo's JSON report. */
export function parseGinkgo(json: string): Outcome {
  const specs = (JSON.parse(json) as { SpecReports: SpecReport[] }[]).flatMap(({ SpecReports }) => SpecReports);
  const failed = (state: string): boolean => !['passed', 'skipped', 'pending'].includes(state);
  const failureOf = ({ Failure }: SpecReport): string => Failure?.ForwardedPanic ?? Failure?.Message ?? '';
  return {
    tests: specs
      .filter(({ LeafNodeType }) => LeafNodeType === 'It')
      .map((spec): TestResult => {
        const name = [...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText].join(' ');
        if (failed(spec.State)) return { name, status: 'failed', detail: failureOf(spec) };
        return { name, status: spec.State === 'passed' ? 'ok' : 'skipped' };
      }),
    aborts: specs
      .filter(({ LeafNodeType, State }) => LeafNodeType !== 'It' && failed(State))
      .map((spec) => `${spec.LeafNodeType}: ${failureOf(spec)}`),
    cutShort: null,
  };
}
