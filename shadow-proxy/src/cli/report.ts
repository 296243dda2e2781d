/**
 * `shadow-compare report`: writes the evidence for an approval into one file; from the durable state if no proxy
 * answers.
 */
import { printableAll } from '../text/printable.js';
import { writeFileSync } from 'node:fs';
import { Option, type Command } from 'commander';
import { openPlan } from '../upstream/open-plan.js';
import type { Plan } from '../plan/plan.js';
import type { Report, ShardFacts } from '../report/contents.js';
import { toHtml } from '../report/html.js';
import { toMarkdown } from '../report/markdown.js';
import { recommend } from '../report/recommendation.js';
import { factsFromState } from '../report/state.js';
import { notCovered } from '../report/uncovered.js';
import { addAdminOptions, commandLine, type AdminClient, type AdminClientOptions } from './admin-client.js';
import { CliError, exitCode } from './exit.js';
import { Fleet } from './fleet.js';
import { withManual } from './manual.js';
import { stderr, stdout } from './output.js';

const FORMATS = ['html', 'md', 'json'] as const;
type Format = (typeof FORMATS)[number];

interface ReportOptions extends AdminClientOptions {
  readonly format?: Format;
  readonly out?: string;
}

export function addReport(program: Command): void {
  const command = program
    .command('report')
    .description('Write one file for an approval: a recommendation, gates, mismatches, verifications, latency, history')
    .addOption(
      new Option(
        '--format <format>',
        'html is one self-contained file (default: from the name of --out, else html)',
      ).choices(FORMATS),
    )
    .option('--out <file>', 'file to write (default: standard output)');
  withManual(command, 'shadow-compare report --plan migration.yaml --out report.html', {
    0: 'written, all shards as their proxies report them',
    3: 'written, but a shard did not answer: it is shown from its durable state',
  });
  addAdminOptions(command).action(async (options: ReportOptions) => {
    process.exitCode = await report(options);
  });
}

async function report(options: ReportOptions): Promise<number> {
  const { out } = options;
  const format = options.format ?? FORMATS.find((each) => out?.endsWith(`.${each}`)) ?? 'html';
  const made = await gather(options);
  const text = WRITERS[format](printableAll(made), (command) => commandLine(command, options));
  if (out === undefined) stdout.write(text);
  else write(out, text);
  const offline = made.shards.filter(({ from }) => from === 'state');
  for (const { shard, problem } of offline)
    stderr.write(`${shard}: from the durable state, not from a running proxy: ${problem}\n`);
  return offline.length > 0 ? exitCode.inconclusive : exitCode.holds;
}

const WRITERS: Readonly<Record<Format, (report: Report, typedAs: (command: string) => string) => string>> = {
  html: toHtml,
  md: toMarkdown,
  json: (made) => `${JSON.stringify(made, null, 2)}\n`,
};

function write(out: string, text: string): void {
  try {
    writeFileSync(out, text);
  } catch (error) {
    throw new CliError(
      'option',
      `--out ${out} cannot be written (${(error as NodeJS.ErrnoException).code})`,
      exitCode.usage,
    );
  }
  stderr.write(`Written to ${out}\n`);
}

async function gather(options: ReportOptions): Promise<Report> {
  const plan = options.plan === undefined ? null : await openPlan(options.plan);
  const { proxies } = await Fleet.open(options);
  const facts = await withStates(plan, await askAll(proxies));
  return {
    version: 1,
    at: new Date().toISOString(),
    plan: plan?.name ?? null,
    recommendation: recommend(facts),
    shards: facts.map((each) => ({ ...each, notCovered: notCovered(each) })),
  };
}

/** The answers of proxies, or why there are none. */
type ProxyAnswer = { readonly facts: readonly ShardFacts[]; readonly problem: string };

async function ask(client: AdminClient): Promise<ProxyAnswer> {
  try {
    const [{ shards }, evidence, history] = await Promise.all([client.status(), client.evidence(), client.history()]);
    const facts = shards.map((snapshot): ShardFacts => ({
      shard: snapshot.name,
      from: 'proxy',
      problem: null,
      snapshot,
      evidence: evidence.find(({ shard }) => shard === snapshot.name)!,
      job: snapshot.job,
      history: history.find(({ shard }) => shard === snapshot.name)?.events ?? [],
    }));
    return { facts, problem: 'the proxy does not serve this shard: it is starting, or it is a standby' };
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'unreachable') throw error;
    return { facts: [], problem: error.message };
  }
}

async function askAll(proxies: readonly AdminClient[]): Promise<ProxyAnswer> {
  const answers = await Promise.all(proxies.map(ask));
  const problems = answers.filter(({ facts }) => facts.length === 0).map(({ problem }) => problem);
  return {
    facts: answers.flatMap(({ facts }) => facts),
    problem: [...new Set(problems)].join('; ') || answers[0].problem,
  };
}

/** The shards of the plan that did not answer, from their saved state. */
async function withStates(plan: Plan | null, { facts, problem }: ProxyAnswer): Promise<readonly ShardFacts[]> {
  if (plan === null) {
    if (facts.length > 0) return facts;
    throw new CliError(
      'unreachable',
      `${problem}; with --plan, the report can be made from the durable state`,
      exitCode.inconclusive,
    );
  }
  return Promise.all(
    plan.shards.map(
      async ({ name }) => facts.find(({ shard }) => shard === name) ?? factsFromState(plan, name, problem),
    ),
  );
}
