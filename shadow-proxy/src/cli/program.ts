/** The operator's program, with its commands: one file for each. */
import { Command } from 'commander';
import { addAssess } from './assess.js';
import { addAccept } from './accept.js';
import { addBackfill } from './backfill.js';
import { addGuard } from './guard.js';
import { addHistory } from './history.js';
import { addLocal } from './local.js';
import { addPromote } from './promote.js';
import { addReport } from './report.js';
import { addRollback } from './rollback.js';
import { addDemo } from './demo.js';
import { usage } from './exit.js';
import { addRun } from './run.js';
import { addRunbook } from './runbook.js';
import { addStage } from './stage.js';
import { addStatus } from './status.js';
import { addVerify } from './verify.js';

export function operatorProgram(): Command {
  const program = new Command('shadow-compare').description('Compares a Redis and the KeyDB that is to replace it, reply by reply.');
  addAssess(program);
  addRun(program);
  addStatus(program);
  addStage(program);
  addBackfill(program);
  addVerify(program);
  addAccept(program);
  addPromote(program);
  addRollback(program);
  addHistory(program);
  addGuard(program);
  addReport(program);
  addRunbook(program);
  addDemo(program);
  addLocal(program);
  return usage(program);
}
