/**
 * The operator's program. Each command is a file; help lists them in this order.
 *
 * Room: cli: the operator's commands and their output.
 * Called by: docs.
 * Calls: every room before it.
 */
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { usage } from './exit.js';

const COMMANDS: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  assess: async () => (await import('./assess.js')).addAssess,
  plan: async () => (await import('./plan.js')).addPlan,
  run: async () => (await import('./run.js')).addRun,
  status: async () => (await import('./status.js')).addStatus,
  backfill: async () => (await import('./backfill.js')).addBackfill,
  verify: async () => (await import('./verify.js')).addVerify,
  job: async () => (await import('./job.js')).addJob,
  accept: async () => (await import('./accept.js')).addAccept,
  promote: async () => (await import('./promote.js')).addPromote,
  cancel: async () => (await import('./cancel.js')).addCancel,
  pause: async () => (await import('./automation.js')).addPause,
  resume: async () => (await import('./automation.js')).addResume,
  rollback: async () => (await import('./rollback.js')).addRollback,
  fence: async () => (await import('./fence.js')).addFence,
  history: async () => (await import('./history.js')).addHistory,
  guard: async () => (await import('./guard.js')).addGuard,
  ask: async () => (await import('./ask.js')).addAsk,
  notify: async () => (await import('./notify.js')).addNotify,
  'key-hash': async () => (await import('./key-hash.js')).addKeyHash,
  report: async () => (await import('./report.js')).addReport,
  runbook: async () => {
    const { addRunbook } = await import('./runbook.js');
    return (program) => addRunbook(program, operatorProgram);
  },
  demo: async () => (await import('./demo.js')).addDemo,
  local: async () => (await import('./local.js')).addLocal,
  complete: async () => (await import('./complete.js')).addComplete,
};

const VERSION = '--version';

/** The version of the installed package. */
function version(): string {
  const file = new URL('../../../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/**
 * The program with only the named command, so that only its file is loaded; with none for `--version`. If there is no
 * such command, all are loaded: help lists them, and an error suggests a similar name.
 */
export async function operatorProgram(name?: string): Promise<Command> {
  const program = new Command('shadow-compare').description(
    'Moves a Redis to KeyDB step by step: compares every reply, copies the keys, moves workloads from stage to stage.',
  );
  program.version(version(), VERSION, 'print the version');
  if (name === VERSION) return usage(program);
  const asked = name !== undefined && Object.hasOwn(COMMANDS, name) ? [COMMANDS[name]] : Object.values(COMMANDS);
  for (const load of asked) (await load())(program);
  // `completion` reads the definitions of all other commands.
  if (asked.length > 1) (await import('./completion.js')).addCompletion(program);
  return usage(program);
}
