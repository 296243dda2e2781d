/** `shadow-compare pause` and `resume`: forbid or allow automatic promotions of a workload (`rollout` in the plan). */
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { addAdminOptions, type AdminClientOptions } from './admin-client.js';
import { Fleet, reportSilent } from './fleet.js';
import { NO_PROXY, withManual } from './manual.js';
import { print } from './output.js';

interface AutomationOptions extends AdminClientOptions {
  readonly reason?: string;
}

interface Words {
  readonly state: 'pause' | 'resume';
  readonly description: string;
  readonly done: (workload: string) => string;
  readonly exit: string;
}

const PAUSE: Words = {
  state: 'pause',
  description: 'Stop the rollout of a workload where it is; the guard still takes it back',
  done: (workload) => `Paused: ${workload} is not promoted by itself. To go on: resume ${workload}`,
  exit: 'the workload is not promoted by itself any more',
};
const RESUME: Words = {
  state: 'resume',
  description: 'Let the rollout of a workload go on, after an operator or the guard has stopped it',
  done: (workload) => `Resumed: the plan's rollout and guard may move ${workload} again`,
  exit: 'the workload may be moved by itself again',
};

function add(program: Command, { state, description, done, exit }: Words): void {
  const command = program
    .command(state)
    .description(description)
    .argument('<workload>', 'name of the workload, or default')
    .option('--reason <text>', 'reason, kept in the history');
  withManual(command, `shadow-compare ${state} sessions --plan migration.yaml`, {
    0: exit,
    1: 'the plan has no such workload: nothing was changed',
    3: `${NO_PROXY}, or not each: done on the others`,
  });
  addAdminOptions(command).action(async (workload: string, { reason, ...options }: AutomationOptions) => {
    const fleet = await Fleet.open(options);
    const by = userInfo().username;
    await fleet.automate({ workload, state, reason: reason ?? `${state}d by an operator`, by });
    print(done(workload));
    process.exitCode = reportSilent(fleet);
  });
}

export const addPause = (program: Command): void => add(program, PAUSE);
export const addResume = (program: Command): void => add(program, RESUME);
