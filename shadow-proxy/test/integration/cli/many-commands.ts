/** Runs commands of `shadow-compare`, each that it is sent, and answers what each printed and its exit code. */
import { exitOnUncaughtErrors, parseArguments, watchOutput } from '../../../src/cli/exit.js';
import { operatorProgram } from '../../../src/cli/program.js';

/** A command's arguments, and what it finds in the environment; null: not set. */
export interface Asked {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | null>>;
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What is sent back. */
export interface Answer extends Ended {
  /** The command has ended this process. */
  readonly wasLast: boolean;
}

const LOOK_MS = 5;

let printed = { stdout: '', stderr: '' };
let running = false;

for (const name of ['stdout', 'stderr'] as const)
  process[name].write = (text: string | Uint8Array) => {
    printed[name] += String(text);
    return true;
  };
watchOutput();
exitOnUncaughtErrors();

process.on('message', ({ args, env }: Asked) => {
  void (async () => {
    const idle = countOf(process.getActiveResourcesInfo());
    running = true;
    printed = { stdout: '', stderr: '' };
    process.exitCode = 0;
    const before = Object.keys(env).map((name) => [name, process.env[name] ?? null] as const);
    setAll(Object.entries(env));
    await parseArguments(await operatorProgram(args[0]), ['node', 'shadow-compare', ...args]);
    await atRest(idle);
    setAll(before);
    answer(false);
    process.exitCode = 0;
  })();
});
// A command may end its process, as an error that nothing catches does.
process.on('exit', () => running && answer(true));
process.on('disconnect', () => process.exit());

function answer(wasLast: boolean): void {
  running = false;
  process.send!({ code: Number(process.exitCode), ...printed, wasLast } satisfies Answer);
}

function setAll(variables: readonly (readonly [name: string, value: string | null])[]): void {
  for (const [name, value] of variables)
    if (value === null) delete process.env[name];
    else process.env[name] = value;
}

/**
 * Resolves when nothing is left of the command that would keep a process of its own alive.
 *
 * @param idle what was there before, each with its number
 */
async function atRest(idle: ReadonlyMap<string, number>): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const left = countOf(process.getActiveResourcesInfo());
      if ([...left].some(([type, count]) => count > (idle.get(type) ?? 0))) return;
      clearInterval(timer);
      resolve();
    }, LOOK_MS).unref();
  });
}

function countOf(types: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const type of types) counts.set(type, (counts.get(type) ?? 0) + 1);
  return counts;
}
