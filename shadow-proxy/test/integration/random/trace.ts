/**
 * What happened to a key before a mismatch: a ring of the last operations on their way, as the sequencer, the mirror's
 * lane and the suspects saw them. No seed repeats how connections interleave, so that a rare mismatch must tell by
 * itself.
 */
import { MirrorLane } from '../../../src/pipeline/mirror.js';
import type { Operation } from '../../../src/pipeline/operation.js';
import { ScriptEffects } from '../../../src/pipeline/script-effects.js';
import { Sequencer } from '../../../src/pipeline/sequencer.js';
import { Ledger } from '../../../src/telemetry/ledger.js';
import { Suspects } from '../../../src/suspects/suspects.js';

const KEPT = 150_000;
/** Of frames and replies, so many bytes. */
const SHOWN = 300;
/** So many findings are traced, and so many of the last steps of each. */
const FINDINGS = 3;
const STEPS = 150;

interface Step {
  readonly at: number;
  readonly what: string;
  readonly db: number;
  readonly frame: Buffer;
  readonly reply: Buffer | null;
}

export interface Trace {
  /** For each of the first findings, the recorded steps of its key. */
  readonly found: readonly string[];
  stop(): void;
}

/** Follows all that goes through the shards of this process. */
export function startTrace(): Trace {
  const ring: Step[] = new Array<Step>(KEPT);
  let count = 0;
  const found: string[] = [];
  const labels = new WeakMap<object, string>();
  let lanes = 0;
  const laneOf = ({ lane }: Operation): string => {
    if (lane === null) return '-';
    let label = labels.get(lane);
    if (label === undefined)
      labels.set(
        lane,
        (label = `${lane.server.side}#${++lanes}/${lane.identity.credentials?.username ?? ''}/${lane.identity.protocol}`),
      );
    return label;
  };
  const cut = (buffer: Buffer, start: number, end: number): Buffer =>
    Buffer.from(buffer.subarray(start, Math.min(end, start + SHOWN)));
  const note = (what: string, db: number, frame: Buffer, reply: Buffer | null = null): void => {
    ring[count++ % KEPT] = { at: performance.now(), what, db, frame, reply };
  };
  const noteOperation = (what: string, operation: Operation, reply: Buffer | null = null): void =>
    note(
      `${what} ${laneOf(operation)} f${operation.follow}${operation.held ? 'h' : ''}${operation.mustCopy ? 'c' : ''}`,
      operation.db,
      cut(operation.frame, operation.start, operation.end),
      reply,
    );

  const undo: (() => void)[] = [];
  const before = <T extends object, K extends keyof T>(
    target: T,
    name: K,
    look: (self: T, args: unknown[]) => void,
  ): void => {
    const own = Object.getOwnPropertyDescriptor(target, name)!;
    const original = own.value as (...args: unknown[]) => unknown;
    Object.defineProperty(target, name, {
      ...own,
      value(this: T, ...args: unknown[]) {
        look(this, args);
        return original.apply(this, args);
      },
    });
    undo.push(() => Object.defineProperty(target, name, own));
  };

  before(Sequencer.prototype, 'submit', (_, [operation, lane]) => {
    (operation as Operation).lane = lane as Operation['lane'];
    noteOperation('submit', operation as Operation);
  });
  before(Sequencer.prototype, 'answered', (_, [operation, buffer, start, end]) =>
    noteOperation('answered', operation as Operation, cut(buffer as Buffer, start as number, end as number)),
  );
  before(ScriptEffects.prototype, 'followChanges', (_, [operation]) =>
    noteOperation('changes', operation as Operation),
  );
  const watched = new WeakSet<object>();
  const watch = (mirror: MirrorLane): void => {
    if (watched.has(mirror)) return;
    watched.add(mirror);
    const { events } = mirror as unknown as {
      events: Record<'matched' | 'accepted' | 'differs' | 'unconfirmed' | 'dropped', (...args: unknown[]) => void>;
    };
    for (const name of ['matched', 'accepted', 'differs', 'unconfirmed', 'dropped'] as const) {
      const original = events[name].bind(events);
      events[name] = (...args) => {
        const [operation, buffer, start, end] = args;
        noteOperation(
          name,
          operation as Operation,
          name === 'differs' ? cut(buffer as Buffer, start as number, end as number) : null,
        );
        original(...args);
      };
    }
  };
  before(MirrorLane.prototype, 'append', (mirror, [operation]) => {
    watch(mirror);
    const { reply, replyStart, replyEnd } = operation as Operation;
    noteOperation(`append(${mirror.gates} gates)`, operation as Operation, cut(reply, replyStart, replyEnd));
  });
  before(MirrorLane.prototype, 'appendAll', (mirror, [operations]) => {
    watch(mirror);
    for (const operation of operations as Operation[]) noteOperation(`append(${mirror.gates} gates)`, operation);
  });
  before(Suspects.prototype, 'mark', (_, [db, key, , reason]) =>
    note(`doubt ${reason as string}`, db as number, Buffer.from(key as Buffer)),
  );
  before(Suspects.prototype, 'clear', (_, [suspect, generation]) => {
    const { db, key, generation: now } = suspect as { db: number; key: Buffer; generation: number };
    note(`clear ${now === generation}`, db, key);
  });
  before(Ledger.prototype, 'record', (_, [finding]) => {
    const { db, key, kind, command } = finding as { db: number; key: Buffer | null; kind: string; command: string };
    if (found.length >= FINDINGS || kind === 'unsupported' || key === null) return;
    const steps: Step[] = [];
    for (let i = Math.max(0, count - KEPT); i < count; i++)
      if (isAbout(ring[i % KEPT], db, key)) steps.push(ring[i % KEPT]);
    found.push(
      [`${command} ${kind} of ${key.toString('latin1')} in ${db}:`, ...steps.slice(-STEPS).map(lineOf)].join('\n'),
    );
  });
  return { found, stop: () => undo.splice(0).forEach((each) => each()) };
}

/** FLUSHDB and its like are about every key. */
const isAbout = ({ db, frame }: Step, wanted: number, key: Buffer): boolean =>
  (db === wanted && frame.includes(key)) || /^\*\d\r\n\$\d\r\n(flush|swap)/i.test(frame.toString('latin1', 0, 20));

const text = (bytes: Buffer): string =>
  JSON.stringify(
    bytes
      .toString('latin1')
      .replaceAll(/(^|\r\n)[*$]\d+(?=\r\n)/g, '')
      .replaceAll('\r\n', ' '),
  ).slice(1, -1);
const lineOf = ({ at, what, frame, reply }: Step): string =>
  `${at.toFixed(2)} ${what}: ${text(frame)}${reply === null ? '' : ` → ${text(reply)}`}`;
