/**
 * A short look at the commands that a live server runs, with `MONITOR`: the only way to see their options from outside.
 * It costs the server throughput while it runs, so it runs only on request, with a limit of time and lines.
 */
import type { TcpSocket } from '../io/sockets.js';
import { KeyList, keysOf } from '../command/keys.js';
import { CommandTable, type CommandSpec } from '../command/table.js';
import { Dialer } from '../upstream/dialer.js';
import { AskError } from '../upstream/asker.js';
import type { Endpoint } from '../plan/endpoint.js';
import { locateArguments } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';

/** The results of MONITOR. */
export interface MonitorResult {
  readonly ms: number;
  readonly commands: number;
  /** Calls of forms that only one of Redis 7 and KeyDB supports, by name as in `formsOf`. */
  readonly forms: ReadonlyMap<string, number>;
}

/** One key of one command. */
export interface KeySighting {
  readonly command: CommandSpec;
  readonly key: Buffer;
  /** The index among the command's keys; 0 for the first. */
  readonly at: number;
  /** Whether a script called the command. */
  readonly isScripted: boolean;
  /** Whether the command sets the key only if it does not exist. */
  readonly ifAbsent: boolean;
}

export type SeeKey = (sighting: KeySighting) => void;

/** Maximum number of commands that are read. */
const MAX_COMMANDS = 500_000;
/** A command of this length is shown with escaped arguments; no server accepts a longer one. */
const MAX_LINE = 256 << 20;
const CONNECT_MS = 5_000;

/**
 * @param seeKey called for each key of each command
 * @throws {AskError} if the server cannot be reached, or refuses MONITOR
 */
export async function monitor(
  endpoint: Endpoint,
  ms: number,
  seeKey?: SeeKey,
  signal?: AbortSignal,
): Promise<MonitorResult> {
  const dialer = new Dialer(endpoint, CONNECT_MS);
  let socket: TcpSocket | undefined;
  try {
    socket = await dialer.connect(await dialer.resolve());
    signal?.addEventListener('abort', () => socket?.destroy());
    const { credentials } = dialer;
    const login =
      credentials === undefined
        ? []
        : [['AUTH', ...(credentials.username === undefined ? [] : [credentials.username]), credentials.password]];
    const commands = [...login, ['MONITOR']];
    for (const command of commands) socket.write(encodeCommand(command));
    return await watch(socket, ms, commands.length, seeKey);
  } catch (problem) {
    throw new AskError(`${endpoint.label}: ${(problem as Error).message}`);
  } finally {
    socket?.destroy();
  }
}

/** @param replies how many commands the server must accept before it shows other clients' commands */
function watch(socket: TcpSocket, ms: number, replies: number, seeKey?: SeeKey): Promise<MonitorResult> {
  const sample = new Sample(seeKey);
  const since = performance.now();
  let accepted = 0;
  let rest = '';
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      if (accepted < replies) reject(new Error(`did not answer MONITOR within ${ms / 1000} s`));
      else resolve({ ms: Math.round(performance.now() - since), commands: sample.commands, forms: sample.forms });
    };
    const timer = setTimeout(end, ms);
    const fail = (problem: Error): void => {
      clearTimeout(timer);
      reject(problem);
      socket.destroy();
    };
    socket.on('error', fail).on('close', () => fail(new Error('the server closed the connection')));
    socket.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString('latin1')).split('\r\n');
      rest = lines.pop()!;
      if (rest.length > MAX_LINE) return fail(new Error(`MONITOR shows a line longer than ${MAX_LINE >> 20} MiB`));
      for (const line of lines) {
        if (line.startsWith('-')) return fail(new Error(`MONITOR is refused: ${line.slice(1)}`));
        if (accepted < replies && line !== '+OK') return fail(new Error('does not answer MONITOR as a Redis does'));
        if (accepted < replies) accepted++;
        else sample.add(line);
      }
      if (sample.commands >= MAX_COMMANDS) end();
    });
  });
}

/** Counts the forms in lines of `MONITOR`, and shows the keys. */
export class Sample {
  commands = 0;
  readonly forms = new Map<string, number>();
  readonly #table = new CommandTable();
  readonly #keys = new KeyList();

  constructor(private readonly seeKey?: SeeKey) {}

  /**
   * @param line such as `+1700000000.123456 [0 127.0.0.1:6000] "SET" "k" "v"`; in scripts, `lua` replaces the address
   */
  add(line: string): void {
    const [, address, quoted] = /^\+\d+\.\d+ \[\d+ ([^\]]*)\] (".*")$/.exec(line) ?? [];
    if (address === undefined) return;
    this.commands++;
    const word = /^"([^"\\]*)"/.exec(quoted)?.[1].toLowerCase() ?? '';
    const known = this.#table.byName(word);
    if (known === undefined) return;
    // Most commands have no such form, and are not read further.
    if (this.seeKey === undefined && known.forms === null && known.subcommands === null) return;
    const frame = encodeCommand(argumentsIn(quoted));
    const [argStart, argEnd]: number[][] = [[], []];
    const argc = locateArguments(frame, 0, argStart, argEnd);
    const command = this.#table.find(frame, argStart, argEnd, argc);
    if (command === undefined) return;
    for (const form of command.forms ?? []) {
      if (form.matches(frame, argStart, argEnd, argc)) this.forms.set(form.name, (this.forms.get(form.name) ?? 0) + 1);
    }
    if (this.seeKey === undefined) return;
    const keys = keysOf(command, frame, argStart, argEnd, argc, this.#keys);
    const options = argStart.slice(3, argc).map((start, i) => frame.toString('latin1', start, argEnd[i + 3]));
    const ifAbsent =
      command.name === 'setnx' || (command.name === 'set' && options.some((option) => /^nx$/i.test(option)));
    for (let at = 0; at < keys; at++) {
      const index = this.#keys.index[at];
      this.seeKey({
        command,
        key: frame.subarray(argStart[index], argEnd[index]),
        at,
        isScripted: address === 'lua',
        ifAbsent,
      });
    }
  }
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b' };

/** The arguments of a line, which `sdscatrepr` has quoted. */
const argumentsIn = (quoted: string): Buffer[] =>
  (quoted.match(/"(?:[^"\\]|\\.)*"/g) ?? []).map((each) =>
    Buffer.from(
      each
        .slice(1, -1)
        .replace(/\\(?:x([0-9a-f]{2})|(.))/g, (_, hex: string | undefined, char: string) =>
          hex === undefined ? (ESCAPES[char] ?? char) : String.fromCharCode(parseInt(hex, 16)),
        ),
      'latin1',
    ),
  );
