/**
 * Keys of a target that several shards share, and of its sources, which no shard has by its `owns`: the sources tell.
 *
 *   on this shard's source ─┬─ another source holds it, too ─▶ contested: reported with both values, and left alone
 *                           └─ none does ─▶ this shard's, if it has no `owns`; else undeclared: reported
 *   on the target ─▶ on none of the sources ─▶ unowned: reported, and never deleted
 */
import { sleep } from '../../io/timers.js';
import type { Owners } from '../../route/owner.js';
import type { Side } from '../../route/stage.js';
import type { KeyDump } from '../key/key-dump.js';
import type { KeyReader } from '../key/key-reader.js';
import type { ScannedKey } from '../job/scanner.js';

export interface SharedTargetContext {
  /** Null if the target is this shard's alone. */
  readonly owners: Owners | null;
  /** This shard's own servers. */
  readonly readers: Readonly<Record<Side, KeyReader>>;
  /** The sources of the other shards. */
  readonly neighbours: readonly KeyReader[];
  /**
   * Waits until the target has confirmed what it was sent up to now by every shard of this process. Gives those of the
   * keys that none of them has as a suspect then, where none was too far behind to know.
   */
  settled<T extends { readonly key: Buffer }>(db: number, keys: readonly T[]): Promise<readonly T[]>;
  /**
   * Whether every shard that has keys on the target is of this process, so that `settled` knows of all that is on the
   * way there.
   */
  knowsAll(): boolean;
}

export type ForeignKind = 'contested' | 'undeclared' | 'unowned';
/** What each holder of a key has; null if that was not looked at. */
export type Holders = Readonly<Record<string, KeyDump | null>>;
type Report = (kind: ForeignKind, db: number, key: Buffer, holders: Holders) => void;

/** Values that are read at once. */
const READ = 16;
/**
 * What only the target has is looked at so often, after times that double: it may come and go, and its delete may be on
 * the way.
 */
const LOOKS = 5;
const PAUSE_MS = 10;
/** A pause that is long enough for a shard in another process: only the owner deletes the key. */
const OTHER_PROCESS_PAUSE_MS = 200;

/** Those of the keys, of this shard's source and nobody's by the plan, that it may copy and compare all the same. */
export async function claim(
  { owners, readers, neighbours }: SharedTargetContext,
  db: number,
  keys: readonly ScannedKey[],
  report: Report,
): Promise<ScannedKey[]> {
  const absent = await Promise.all(neighbours.map(async (neighbour) => new Set(await neighbour.absent(db, keys))));
  const isHeld = (scanned: ScannedKey): boolean => absent.some((from) => !from.has(scanned));
  const mine = keys.filter((scanned) => !isHeld(scanned));
  const held = keys.filter(isHeld);
  const all = [readers.source, ...neighbours];
  for (let at = 0; at < held.length; at += READ) {
    const some = held.slice(at, at + READ);
    const values = await Promise.all(all.map((reader) => reader.read(db, some)));
    for (const [i, scanned] of some.entries()) {
      const holders = Object.fromEntries(
        all.flatMap(({ name }, of) => (values[of][i].payload === null ? [] : [[name, values[of][i]]])),
      );
      // The key may be deleted by now.
      if (values[0][i].payload === null) continue;
      if (Object.keys(holders).length === 1) mine.push(scanned);
      else report('contested', db, scanned.key, holders);
    }
  }
  if (owners!.mine === null) return mine;
  for (const { key } of mine) report('undeclared', db, key, { [readers.source.name]: null });
  return [];
}

/** Reports those of the keys, of the target and nobody's by the plan, that no source has. */
export async function reportUnowned(
  { readers, neighbours, settled, knowsAll }: SharedTargetContext,
  db: number,
  keys: readonly ScannedKey[],
  report: Report,
): Promise<void> {
  const pauseMs = knowsAll() ? PAUSE_MS : OTHER_PROCESS_PAUSE_MS;
  let left = keys;
  for (let attempt = 1; left.length > 0; attempt++) {
    for (const source of [readers.source, ...neighbours]) left = await source.absent(db, left);
    // What deleted it there is on the target from then on.
    if (left.length > 0) left = await settled(db, left);
    const deleted = new Set(await readers.target.absent(db, left));
    left = left.filter((scanned) => !deleted.has(scanned));
    if (attempt === LOOKS) break;
    if (left.length > 0) await sleep(pauseMs * 2 ** (attempt - 1));
  }
  for (const { key } of left) report('unowned', db, key, { [readers.target.name]: null });
}

/** Whether a key of this shard may be another shard's: two sources hold it. */
export async function isContested(
  { owners, neighbours }: SharedTargetContext,
  db: number,
  key: Buffer,
): Promise<boolean> {
  if (owners === null || owners.of(key, 0, key.length) !== 'nobody') return false;
  const absent = await Promise.all(neighbours.map((neighbour) => neighbour.absent(db, [{ key }])));
  return absent.some((from) => from.length === 0);
}
