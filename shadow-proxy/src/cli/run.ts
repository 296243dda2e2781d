/**
 * `shadow-compare run`: runs a proxy without a plan file, until its time is over or Ctrl-C, and then gives a verdict.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Option, type Command } from 'commander';
import type { Consent } from '../stages/gate-facts.js';
import { launch, type LaunchedShard } from '../shard/launch.js';
import { afterDeath } from '../local/guard.js';
import { createLogger, LOG_LEVELS, type LogLevel } from '../telemetry/log.js';
import { PlanError } from '../plan/errors.js';
import { planFrom } from '../plan/load.js';
import type { Plan } from '../plan/plan.js';
import { STAGES, type Stage } from '../route/stage.js';
import { onStop } from '../io/signals.js';
import { keysConfirmed, YES } from './confirm.js';
import { duration, exitCode, listenAddress, outputClosed } from './exit.js';
import { withManual } from './manual.js';
import { judge, type RunVerdict } from './run-verdict.js';
import { LiveView, renderMismatch, renderVerdict } from './view.js';
import { print } from './output.js';

export interface RunOptions {
  readonly source: string;
  readonly target: string;
  readonly listen: string;
  readonly for?: number;
  readonly stage: Stage;
  readonly json?: boolean;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly ledger?: string;
  readonly redact: boolean;
  readonly logLevel: LogLevel;
  readonly overwrite?: boolean;
  readonly yes?: number;
}

const SHOWN_MISMATCHES = 5;

export function addRun(program: Command): void {
  const command = program
    .command('run')
    .description('Proxy between two servers, compare every reply, and end with a verdict (no plan file)')
    .requiredOption(
      '--source <url>',
      'the source Redis: redis://, rediss:// or redis+sentinel://; ${NAME} is an environment variable',
    )
    .requiredOption('--target <url>', 'the target KeyDB')
    .option('--listen <address>', 'address that clients connect to', listenAddress, '127.0.0.1:6400')
    .option('--for <duration>', 'stop after this time, such as 30s, 5m or 1h (default: run until Ctrl-C)', duration)
    .addOption(new Option('--stage <stage>', 'stage for all keys').choices(STAGES).default('shadow'))
    .option('--overwrite', 'allow clients to overwrite keys that only the target has; confirm their number with --yes')
    .option(...YES, keysConfirmed)
    .option('--ca <file>', 'CA certificate for rediss:// servers')
    .option('--cert <file>', "the proxy's client certificate for rediss:// servers")
    .option('--key <file>', 'the key of that certificate')
    .option('--ledger <directory>', 'keep the ledger of mismatches in this directory')
    .option('--no-redact', 'show keys and replies in full, in the output and in the ledger')
    .option('--json', 'print one JSON object at the end')
    .addOption(
      new Option('--log-level <level>', 'lowest level of log messages on standard error')
        .choices(LOG_LEVELS)
        .default('warn'),
    )
    .action(async (options: RunOptions) => {
      process.exitCode = await run(options);
    });
  withManual(command, 'shadow-compare run --source redis://10.0.0.11:6379 --target redis://10.0.0.21:6379 --for 10m', {
    0: 'holds: every pair of replies was compared, and none is a mismatch',
    1: 'does not hold: a mismatch, or a server was restarted or replaced',
    3: 'inconclusive: nothing compared, suspects left, or a server does not answer',
  });
}

async function run(options: RunOptions): Promise<number> {
  const temporary = await mkdtemp(join(tmpdir(), 'shadow-compare-'));
  const callOff = afterDeath('rm -rf -- "$1"', temporary);
  try {
    const plan = runPlan(options, options.ledger ? resolve(options.ledger) : temporary);
    const launched = await launch(plan, plan.shards[0], createLogger(options.logLevel, 2), {
      alike: true,
      consent: consentOf(options),
    });
    try {
      return await observe(launched, plan, options);
    } finally {
      await launched.stop();
    }
  } finally {
    await rm(temporary, { recursive: true, force: true });
    callOff();
  }
}

/** Nothing is copied or deleted here: only clients overwrite keys. */
const consentOf = ({ overwrite = false, yes = 0 }: RunOptions): Consent => ({
  overwrite,
  deleteForeign: false,
  confirm: yes,
});

async function observe({ shard, ledger, lost }: LaunchedShard, plan: Plan, options: RunOptions): Promise<number> {
  const began = performance.now();
  const leftMs = (): number | null =>
    options.for === undefined ? null : Math.max(0, options.for - (performance.now() - began));
  const { host } = plan.shards[0].listen;
  if (!options.json) print(`Point a client at redis://${host}:${shard.port}`);
  const view = options.json ? null : new LiveView(() => shard.snapshot(), leftMs);
  const taken = await Promise.race([untilTheEnd(options.for), lost]);
  if (taken) {
    view?.stop();
    throw taken;
  }
  const drained = await shard.drain(plan.limits.drainMs);
  view?.stop();
  const snapshot = shard.snapshot();
  const verdict = judge(snapshot, drained);
  if (options.json) print(JSON.stringify({ ...verdict, drained, snapshot, mismatches: ledger.latest() }, null, 2));
  else report(verdict, ledger);
  return verdict.exitCode;
}

function report(verdict: RunVerdict, ledger: LaunchedShard['ledger']): void {
  const latest = ledger.latest().slice(-SHOWN_MISMATCHES);
  if (latest.length > 0) print(`\nThe last ${latest.length} of ${ledger.total} recorded mismatches:`);
  for (const entry of latest) print(`  ${renderMismatch(entry)}`);
  print(`\n${renderVerdict(verdict)}`);
}

/**
 * Resolves when the time is over, the operator asks for it, or the reader of the output has ended. If the operator asks
 * twice, the process ends without a verdict.
 */
function untilTheEnd(forMs: number | undefined): Promise<void> {
  return new Promise((done) => {
    const timer = forMs === undefined ? undefined : setTimeout(done, forMs);
    outputClosed.addEventListener('abort', () => done());
    onStop(
      () => {
        clearTimeout(timer);
        done();
      },
      () => process.exit(exitCode.inconclusive),
    );
  });
}

/** The plan for the options. @throws {PlanError} that names the options */
export function runPlan(options: RunOptions, state: string): Plan {
  const { ca, cert, key } = options;
  const tls = ca || cert || key ? { ca, cert, key } : undefined;
  const forServer = (url: string): object | undefined =>
    tls && url.startsWith('rediss') ? Object.fromEntries(Object.entries(tls).filter(([, file]) => file)) : undefined;
  const [source, target] = [forServer(options.source), forServer(options.target)];
  const shard = {
    name: 'run',
    listen: options.listen.includes('://') ? options.listen : `redis://${options.listen}`,
    source: options.source,
    target: options.target,
    ...(source || target ? { tls: { ...(source && { source }), ...(target && { target }) } } : {}),
  };
  const value = {
    version: 1,
    name: 'run',
    shards: [shard],
    default: { stage: options.stage },
    state,
    ledger: { redact: options.redact },
    admin: { listen: '127.0.0.1:0' },
  };
  try {
    return planFrom(value, 'shadow-compare run', { directory: process.cwd(), env: process.env });
  } catch (error) {
    if (!(error instanceof PlanError)) throw error;
    // The values come from options: name the option in the error.
    const problems = error.problems.map(({ path, message }) => ({
      path: [`--${String(path[2] === 'tls' ? (path[4] ?? 'ca') : path[2])}`],
      message,
    }));
    throw new PlanError('shadow-compare run', problems);
  }
}
