/**
 * `shadow-compare runbook`: runs a page of runbooks/ step by step against the plan. It keeps the position, and asks
 * before each change. The history of the migration records who changed what, with which result.
 */
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { loadPlan } from '../plan/load.js';
import type { Plan } from '../plan/plan.js';
import { RunbookError, type Runbook, type Step } from '../runbook/document.js';
import { misses, pasteable, type Outcome, type Variables } from '../runbook/expect.js';
import {
  namesOf,
  renderNames,
  renderGroup,
  renderProgress,
  renderRun,
  renderStop,
  renderUndo,
  smallGatesNote,
  type Progress,
} from '../runbook/guise.js';
import { appendLog, logFile, readLog } from '../runbook/log.js';
import { checksOf, doneOf, layOut, nextOf, toDo, type LogEntry, type Stop } from '../runbook/place.js';
import { runCommand } from '../runbook/run.js';
import { openRunbook, ROOT, shelved, weekAfter } from '../runbook/shelf.js';
import { count } from '../text/figures.js';
import { retyped } from '../text/invocation.js';
import { didYouMean } from '../text/near.js';
import { quoted } from '../text/shell.js';
import { commandLine } from './admin-client.js';
import { Fleet } from './fleet.js';
import { argumentsOf, runInProcess, type LoadProgram } from './in-process.js';
import { confirmEnd, confirmYes } from './confirm.js';
import { CliError, exitCode } from './exit.js';
import { withManual } from './manual.js';
import { addWaitOptions, WAIT_VARIABLE, waitOf, type WaitOptions } from './wait.js';
import { print, stderr, stdout } from './output.js';

interface RunbookOptions extends WaitOptions {
  readonly plan?: string;
  readonly workload?: readonly string[];
  readonly next?: boolean;
  readonly until?: string;
  readonly all?: boolean;
  readonly fleet?: boolean;
  readonly step?: string;
  readonly undo?: string;
  readonly check?: boolean;
  readonly again?: boolean;
  readonly yes?: boolean;
  readonly pointOfNoReturn?: string;
  readonly log?: string;
  readonly tokenFile?: string;
}

const DEFAULT_PLAN = 'migration.yaml';
const MODES = ['next', 'until', 'all', 'step', 'undo', 'check', 'again'] as const;

/** @param load loads the commands that steps run */
export function addRunbook(program: Command, load: LoadProgram): void {
  const command = program
    .command('runbook')
    .description(
      'Follow a runbook: show the position, run steps, undo a step, or check that its expectations still hold',
    )
    .argument(
      '[name]',
      'runbook, such as week-1, or your own file ending in .md (default: list all, with the position in each week)',
    )
    .option('--plan <file>', `the migration plan (default: ${DEFAULT_PLAN})`)
    .option('--workload <names...>', 'only these workloads (default: all workloads of a step)')
    .option('--next', 'run the next step')
    .option('--until <step>', 'run all steps up to this one, such as dualwrite; ask once for each change')
    .option('--all', 'run all steps to the end; ask once for each change, for all its workloads')
    .option(
      '--fleet',
      'run all steps to the end, or to --until, in one process; show one line for each that is as expected',
    )
    .option('--step <id>', 'run this step, such as dualwrite:sessions')
    .option('--undo <id>', 'run the undo of this step')
    .option('--check', 'run the finished read-only steps again, and list the expectations that no longer hold')
    .option('--again', 'start from the first step; undoes nothing')
    .option('--yes', 'do not ask before a change that has an undo')
    .option(
      '--point-of-no-return <migration>',
      'confirm the irreversible steps with the name of the migration, which is asked for otherwise',
    )
    .option('--log <file>', 'record of the steps done (default: runbooks.jsonl beside the state directory of the plan)')
    .option(
      '--token-file <file>',
      'file with the admin token, for the history (default: SHADOW_PROXY_TOKEN, then --plan)',
    )
    .option('--json', 'print one JSON object; output of the steps goes to standard error')
    .action(async (name: string | undefined, options: RunbookOptions) => {
      process.exitCode = name === undefined ? await list(options) : await follow(name, options, load);
    });
  addWaitOptions(command);
  withManual(command, 'shadow-compare runbook week-1 --plan migration.yaml --next', {
    0: 'shown, or every expectation of the step holds',
    1: 'an expectation does not hold, or a change was not confirmed',
    3: 'the step was inconclusive, or there was nothing to check',
  });
}

async function list(options: RunbookOptions): Promise<number> {
  const { weeks, others, alerts } = shelved();
  const plan = options.plan === undefined && !existsSync(DEFAULT_PLAN) ? null : loadPlan(options.plan ?? DEFAULT_PLAN);
  const log = plan === null ? [] : await readLog(resolve(options.log ?? logFile(plan.state)));
  const all = [...weeks, ...others, ...alerts].map((name) => progressOf(openRunbook(name), plan, log));
  if (options.json) {
    print(JSON.stringify(all, null, 2));
    return exitCode.holds;
  }
  const of = (names: readonly string[]): Progress[] => all.filter(({ name }) => names.includes(name));
  const current = plan === null ? undefined : of(weeks).find(({ next }) => next !== null);
  const lines = [
    plan === null ? 'Weeks (give --plan to see the position):' : `Weeks of the migration ${plan.name}:`,
    ...renderProgress(of(weeks), current),
    'On any day:',
    ...renderProgress(of(others), undefined),
    'For an alert of this name:',
    ...renderNames(alerts),
    ...(current === undefined ? [] : ['Next:', `  ${commandLine(`runbook ${current.name}`, options)} --next`]),
  ];
  print(lines.join('\n'));
  return exitCode.holds;
}

/** The progress of a page; without a plan, nothing is done. */
function progressOf(book: Runbook, plan: Plan | null, log: readonly LogEntry[]): Progress & { readonly ids: string[] } {
  const { name, title, steps } = book;
  const ids = steps.map(({ id }) => id);
  if (plan === null) return { name, title, steps: steps.length, done: 0, next: ids[0] ?? null, ids };
  const everyName = plan.workloads.map((workload) => workload.name);
  const done = doneOf(name, layOut(book, plan.workloads, everyName), log);
  // A page that is run for named workloads has no position of its own.
  const stops = layOut(book, plan.workloads, null);
  const next = nextOf(stops, done)?.id ?? null;
  return { name, title, steps: stops.length, done: stops.filter(({ id }) => done.has(id)).length, next, ids };
}

async function follow(name: string, options: RunbookOptions, load: LoadProgram): Promise<number> {
  const modes = MODES.filter((mode) => options[mode] !== undefined);
  if (modes.length > 1)
    throw new CliError(
      'option',
      `${modes.map((mode) => `--${mode}`).join(' and ')}: give one of them, or none to see the position`,
      exitCode.usage,
    );
  if (options.fleet && modes.some((mode) => mode !== 'until' && mode !== 'all'))
    throw new CliError('option', `--fleet and --${modes[0]}: give one of them`, exitCode.usage);
  const place = await Place.open(name, options, load);
  if (options.again) return place.beginAgain();
  if (options.check) return place.check();
  if (options.undo !== undefined) return place.take(place.named(options.undo), 'undo');
  if (options.step !== undefined) return place.take(place.named(options.step), 'run');
  if (options.until !== undefined) return place.runTo(place.endOf(options.until));
  if (options.all || options.fleet) return place.runTo(null);
  if (!options.next) return place.show();
  const next = place.next();
  if (next !== null) return place.take(next, 'run');
  return place.show();
}

/** A runbook, a plan, and the steps done so far. */
class Place {
  private constructor(
    private readonly runbook: Runbook,
    private readonly planFile: string,
    private readonly plan: Plan,
    private readonly stops: readonly Stop[],
    private readonly done: Set<string>,
    private readonly file: string,
    private readonly options: RunbookOptions,
    private readonly load: LoadProgram,
  ) {}

  static async open(name: string, options: RunbookOptions, load: LoadProgram): Promise<Place> {
    const runbook = opened(name);
    if (runbook.steps.length === 0)
      throw new CliError('no-steps', `${runbook.name}.md has no steps to run: read it`, exitCode.usage);
    const planFile = resolve(options.plan ?? DEFAULT_PLAN);
    if (options.plan === undefined && !existsSync(planFile))
      throw new CliError(
        'option',
        `--plan is missing, and there is no ${DEFAULT_PLAN} in this directory`,
        exitCode.usage,
      );
    const plan = loadPlan(planFile);
    const unknown =
      options.workload?.filter((each) => !plan.workloads.some((workload) => workload.name === each)) ?? [];
    if (unknown.length > 0)
      throw new CliError(
        'option',
        `--workload ${unknown.join(' ')}: the plan has no such workload${didYouMean(
          unknown[0],
          plan.workloads.map((workload) => workload.name),
        )}. Its workloads: ${plan.workloads.map((workload) => workload.name).join(', ')}`,
        exitCode.usage,
      );
    if (options.workload === undefined && runbook.steps.some(({ each }) => each === 'named'))
      throw new CliError(
        'option',
        `${runbook.name}.md needs the workloads by name: add --workload ${plan.workloads[0]?.name ?? 'NAME'}`,
        exitCode.usage,
      );
    const stops = layOut(runbook, plan.workloads, options.workload ?? null);
    const file = resolve(options.log ?? logFile(plan.state));
    // All workloads of the plan count: a step that was done for one workload stays done if another one is named.
    const done = doneOf(
      runbook.name,
      layOut(
        runbook,
        plan.workloads,
        plan.workloads.map((workload) => workload.name),
      ),
      await readLog(file),
    );
    return new Place(runbook, planFile, plan, stops, new Set(done), file, options, load);
  }

  /** With `--fleet`: the output of the step, which is shown only if it is not as expected. */
  #held = '';

  next(): Stop | null {
    return nextOf(this.stops, this.done);
  }

  /** @throws {CliError} if no stop or several stops have the name */
  named(id: string): Stop {
    const found = this.stops.filter((stop) => stop.id === id || stop.step.id === id);
    if (found.length === 1) return found[0];
    const allowed = found.length === 0 ? this.stops : found;
    throw new CliError(
      'option',
      `${id} is ${found.length === 0 ? 'not a step' : 'several steps'} of ${this.runbook.name}.md${found.length === 0 ? didYouMean(id, this.#stepNames()) : ''}. Allowed: ${allowed.map((stop) => stop.id).join(', ')}`,
      exitCode.usage,
    );
  }

  #stepNames(): string[] {
    return [...new Set(this.stops.flatMap(({ id, step }) => [step.id, id]))];
  }

  /** The last stop of a step, or the stop with that name. @throws {CliError} if there is none */
  endOf(id: string): Stop {
    const found = this.stops.findLast((stop) => stop.id === id || stop.step.id === id);
    if (found !== undefined) return found;
    const steps = new Set(this.stops.map(({ step }) => step.id));
    throw new CliError(
      'option',
      `--until ${id} is not a step of ${this.runbook.name}.md${didYouMean(id, this.#stepNames())}. Allowed: ${[...steps].join(', ')}, or one of them for one workload, such as ${this.stops[0].id}`,
      exitCode.usage,
    );
  }

  /**
   * Runs the stops that are not done yet, up to the first that fails. A change is confirmed once, for all workloads.
   * @param end the last stop to run; null: to the end of the runbook
   */
  async runTo(end: Stop | null): Promise<number> {
    const groups = toDo(this.stops, this.done, end);
    const entries: LogEntry[] = [];
    let code: number = exitCode.holds;
    this.say(smallGatesNote(this.plan.gates).trimEnd());
    for (const group of groups) {
      const [{ step }] = group;
      if (step.changes !== undefined) {
        this.say(this.#shown(group));
        await this.#confirm(step, step.id, namesOf(group));
      }
      for (const stop of group) {
        if (this.options.fleet) this.#held = '';
        else if (step.changes === undefined) this.say(this.#shown([stop]));
        else if (group.length > 1) this.say(stop.id);
        const { entry, outcome } = await this.#perform(stop, 'run', step.run);
        entries.push(entry);
        code = codeOf(entry.failed, outcome);
        if (this.options.fleet && code !== exitCode.holds) this.say(`${this.#shown([stop])}\n${this.#held.trimEnd()}`);
        if (!this.options.json) this.#conclude(stop, 'run', entry.failed);
        if (code !== exitCode.holds) break;
      }
      if (code !== exitCode.holds) break;
    }
    if (this.options.json)
      print(
        JSON.stringify(
          entries.map((entry) => ({ ...entry, held: entry.failed.length === 0 })),
          null,
          2,
        ),
      );
    if (groups.length === 0) this.say(`${end?.id ?? 'Every step'} is done already: nothing was run.`);
    if (code !== exitCode.holds) this.say('The same command continues with this step.');
    return code;
  }

  show(): number {
    const next = this.next();
    const steps = this.stops.map(({ id, step, workload }) => ({
      id,
      workload,
      run: step.run,
      changes: step.changes ?? null,
      undo: step.undo ?? null,
      done: this.done.has(id),
    }));
    if (this.options.json)
      print(
        JSON.stringify(
          { runbook: this.runbook.name, title: this.runbook.title, next: next?.id ?? null, steps },
          null,
          2,
        ),
      );
    else
      print(
        `${smallGatesNote(this.plan.gates)}${renderRun(this.runbook, this.stops, this.done, this.#command(this.runbook.name))}`,
      );
    return exitCode.holds;
  }

  async beginAgain(): Promise<number> {
    await appendLog(this.file, this.#entry(null, 'again', null, null, []));
    this.say(`${this.runbook.name}: starts from the first step again; nothing was undone`);
    if (this.options.json) print(JSON.stringify({ runbook: this.runbook.name, begun: 'anew' }));
    return exitCode.holds;
  }

  /** Runs a step, or its undo. */
  async take(stop: Stop, kind: 'run' | 'undo'): Promise<number> {
    const { step } = stop;
    const command = kind === 'run' ? step.run : step.undo;
    if (command === undefined)
      throw new CliError(
        'no-undo',
        `${stop.id} ${step.irreversible === undefined ? 'is read-only: there is nothing to undo' : `cannot be undone: ${step.irreversible}`}`,
        exitCode.usage,
      );
    const shown = kind === 'undo' ? renderUndo(stop, this.#pasteable(stop, command)) : this.#shown([stop]);
    this.say(`${smallGatesNote(this.plan.gates)}${shown}`);
    if (kind === 'undo') await this.#confirmUndo(stop);
    else if (step.changes !== undefined) await this.#confirm(step, stop.id, namesOf([stop]));
    const { entry, outcome } = await this.#perform(stop, kind, command);
    if (this.options.json)
      print(JSON.stringify({ ...entry, held: entry.failed.length === 0, printed: outcome.stdout }, null, 2));
    else this.#conclude(stop, kind, entry.failed);
    return codeOf(entry.failed, outcome);
  }

  /** Runs the command, compares its result with the expectations, and records both. */
  async #perform(
    stop: Stop,
    kind: 'run' | 'undo',
    command: string,
  ): Promise<{ readonly entry: LogEntry; readonly outcome: Outcome }> {
    const { step } = stop;
    const outcome = await this.#run(stop, command);
    const failed = misses(
      kind === 'run' ? step.expect : { exit: 0, output: [], json: {} },
      outcome,
      this.#variables(stop),
    );
    const entry = this.#entry(stop, kind, command, outcome.exit, failed);
    await appendLog(this.file, entry);
    // Checks are frequent, and would hide the changes in the history.
    if (step.changes !== undefined) await this.#tell(entry);
    if (kind === 'run' && failed.length === 0) this.done.add(stop.id);
    return { entry, outcome };
  }

  async check(): Promise<number> {
    const results: { entry: LogEntry; outcome: Outcome }[] = [];
    for (const stop of checksOf(this.stops, this.done)) {
      this.say(this.#shown([stop]));
      const outcome = await this.#run(stop, stop.step.run);
      const entry = this.#entry(
        stop,
        'check',
        stop.step.run,
        outcome.exit,
        misses(stop.step.expect, outcome, this.#variables(stop)),
      );
      await appendLog(this.file, entry);
      results.push({ entry, outcome });
    }
    const broken = results.filter(({ entry }) => entry.failed.length > 0);
    if (this.options.json)
      print(
        JSON.stringify(
          results.map(({ entry }) => ({ ...entry, held: entry.failed.length === 0 })),
          null,
          2,
        ),
      );
    this.say(
      results.length === 0
        ? 'There is no finished read-only step to check.'
        : `${results.length - broken.length} of ${count(results.length, 'read-only step')} ${results.length - broken.length === 1 ? 'holds' : 'hold'}.${broken.map(({ entry }) => `\n  ${entry.stop}: ${entry.failed.join('; ')}`).join('')}`,
    );
    // Nothing was checked.
    if (results.length === 0) return exitCode.inconclusive;
    return broken.reduce(
      (worst, { entry, outcome }) => (worst === exitCode.fails ? worst : codeOf(entry.failed, outcome)),
      exitCode.holds as number,
    );
  }

  /** @throws {CliError} if the operator declines, or cannot be asked */
  async #confirm({ changes, irreversible }: Step, id: string, names: readonly string[]): Promise<void> {
    const whom = names.length === 0 ? '' : ` for ${names.join(', ')}`;
    const question = { what: `${id} makes a change: ${changes}`, otherwise: `${id} was not run`, shown: true };
    if (irreversible !== undefined) {
      const what = `${id} cannot be undone${whom}: ${changes}. ${irreversible}`;
      await confirmEnd(this.plan.name, { ...question, what }, this.options.pointOfNoReturn);
    } else if (!this.options.yes) {
      await confirmYes(question, names.length > 1 ? `Run it for ${names.length} workloads?` : 'Run it?', '--yes');
    }
  }

  async #confirmUndo({ id }: Stop): Promise<void> {
    if (this.options.yes) return;
    const question = { what: `${id} would be undone`, otherwise: `${id} was not undone`, shown: true };
    await confirmYes(question, 'Undo it?', '--yes');
  }

  #shown(group: readonly [Stop, ...Stop[]]): string {
    const [stop] = group;
    const { run, undo } = stop.step;
    const commands = group.map((each) => this.#pasteable(each, run));
    return group.length > 1
      ? renderGroup(group, commands)
      : renderStop(stop, commands[0], undo === undefined ? undefined : this.#pasteable(stop, undo));
  }

  #pasteable(stop: Stop, command: string): string {
    return pasteable(retyped(command), this.#variables(stop));
  }

  /** The command for a page, with the options that lead to the same plan and position. */
  #command(name: string): string {
    const { plan, log, tokenFile, workload } = this.options;
    const more = workload === undefined ? '' : ` --workload ${workload.map(quoted).join(' ')}`;
    const record = log === undefined ? '' : ` --log ${quoted(log)}`;
    return `${commandLine(`runbook ${quoted(name)}${more}`, { plan, tokenFile })}${record}`;
  }

  #run({ step, workload }: Stop, command: string): Promise<Outcome> {
    const waitMs = waitOf(this.options);
    const environment: Variables = {
      ...this.#variables({ workload }),
      ...(step.irreversible !== undefined && { MIGRATION: this.plan.name }),
      ...(waitMs > 0 && { [WAIT_VARIABLE]: `${waitMs}ms` }),
    };
    if (!this.options.fleet)
      return runCommand(command, environment, ROOT, (text) => void (this.options.json ? stderr : stdout).write(text));
    const keep = (text: string): void => void (this.#held += text);
    const words = argumentsOf(command, environment);
    return words === null
      ? runCommand(command, environment, ROOT, keep)
      : runInProcess(this.load, words, environment, keep);
  }

  /** The variables that commands and expectations of a page may use. */
  #variables({ workload }: Pick<Stop, 'workload'>): Variables {
    return { PLAN: this.planFile, ...(workload !== null && { WORKLOAD: workload }) };
  }

  #entry(
    stop: Stop | null,
    kind: LogEntry['kind'],
    command: string | null,
    exit: number | null,
    failed: readonly string[],
  ): LogEntry {
    return {
      at: new Date().toISOString(),
      runbook: this.runbook.name,
      stop: stop?.id ?? null,
      kind,
      by: userInfo().username,
      command,
      exit,
      failed,
    };
  }

  /**
   * Each process of the plan has its own history. A process that does not answer is reported, and the run continues.
   */
  async #tell({ runbook, stop, kind, by, command, exit, failed }: LogEntry): Promise<void> {
    const { proxies } = await Fleet.open({ plan: this.planFile, tokenFile: this.options.tokenFile });
    for (const proxy of proxies) {
      await proxy
        .note({
          runbook,
          step: stop!,
          kind: kind as 'run' | 'undo',
          by,
          command: command!.trim().slice(0, MAX_COMMAND),
          exit,
          held: failed.length === 0,
        })
        .catch((error: unknown) => {
          if (!(error instanceof CliError)) throw error;
          stderr.write(`Recorded in ${this.file} only, not in the history of the migration: ${error.message}\n`);
        });
    }
  }

  #conclude(stop: Stop, kind: 'run' | 'undo', failed: readonly string[]): void {
    if (failed.length > 0)
      return print(`✗ ${stop.id}${kind === 'undo' ? ' was not undone' : ''}: ${failed.join('; ')}`);
    const next = nextOf(this.stops, this.done);
    if (kind === 'undo') return print(`✓ ${stop.id} is undone`);
    if (next !== null) return print(this.options.fleet ? `✓ ${stop.id}` : `✓ ${stop.id}; next: ${next.id}`);
    print(`✓ ${stop.id}: that was the last step`);
    const week = weekAfter(this.runbook.name);
    if (week !== null) print(`Next week:\n  ${this.#command(week)}`);
  }

  private say(text: string): void {
    if (text === '') return;
    (this.options.json ? stderr : stdout).write(`${text}\n`);
  }
}

/** Maximum length that the admin HTTP accepts. */
const MAX_COMMAND = 1000;

function codeOf(failed: readonly string[], { exit }: Outcome): number {
  if (failed.length === 0) return exitCode.holds;
  return exit === null || exit === exitCode.inconclusive ? exitCode.inconclusive : exitCode.fails;
}

function opened(name: string): Runbook {
  try {
    return openRunbook(name);
  } catch (error) {
    throw error instanceof RunbookError ? new CliError('runbook', error.message, exitCode.usage) : error;
  }
}
