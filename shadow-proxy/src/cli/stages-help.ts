/** Prints the transitions between stages below the options of `promote` and `rollback`. */
import type { Command } from 'commander';
import { TRANSITIONS } from '../route/transitions.js';
import { wrap } from './fold.js';

const INDENT = 23;
const WIDTH = 78;

/** @param forward the transitions of `promote`; else those of `rollback` */
export function withStages(command: Command, forward: boolean): Command {
  const lines = TRANSITIONS.filter((each) => each.forward === forward).flatMap(({ from, to, sentence }) => {
    const name = `  ${from} → ${to}`;
    return wrap(sentence, WIDTH - INDENT).map((line, i) => `${(i === 0 ? name : '').padEnd(INDENT)}${line}`);
  });
  return command.addHelpText('after', `\nStages:\n${lines.join('\n')}`);
}
