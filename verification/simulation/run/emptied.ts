/**
 * An authority that starts again without its keys, while its mirror has them. Until the operator accepts the authority,
 * the mirror keeps what no client has touched since; and what is restored is what the mirror has.
 */
import { plain } from '../check/equality.js';
import type { Command } from '../clients/draw.js';
import type { Reply } from '../clients/replies.js';
import { keyName, partsOf, type KeyName } from '../world/key-name.js';
import type { ServerHost } from '../world/server-host.js';
import type { Checks } from './checks.js';
import type { Load } from './load.js';
import { OF_DIFFERING_KEYS, type LossWatch, type Scene } from './scene.js';

/** Commands that change nothing if they find nothing. */
const TAKING = new Set([
  'LPOP',
  'RPOP',
  'LMOVE',
  'RPOPLPUSH',
  'ZPOPMIN',
  'ZPOPMAX',
  'SPOP',
  'BLPOP',
  'BRPOP',
  'BLMOVE',
]);
/** Keys that the authority had again, as the mirror had them. */
export const RESTORED = 'keys restored';

export class Emptied implements LossWatch {
  isLost = false;
  /** How many keys were restored. */
  readonly tried = new Map<string, number>();
  /** What both servers had when the authority ended, of keys that no client has touched since. */
  readonly #untouched = new Map<KeyName, string>();

  constructor(
    private readonly scene: Scene,
    private readonly load: Load,
    private readonly checks: Checks,
  ) {
    for (const kind of OF_DIFFERING_KEYS) scene.trueMismatches.add(kind);
  }

  begin(): void {
    this.isLost = true;
    this.#untouched.clear();
    const { scene, checks } = this;
    checks.equality.compareAll(scene.now);
    const { suspects } = scene.proxy.parts!;
    for (const [db, keys] of scene.mirror!.server.model.keyspace())
      for (const [name, entry] of keys) {
        const key = keyName(db, name);
        const isEqual = !checks.equality.differing.has(key) && suspects.get(partsOf(key).id) === undefined;
        if (isEqual && entry.expireAt === -1 && !checks.isSuspect(key)) this.#untouched.set(key, plain(entry));
      }
    this.#touchWaiting();
  }

  /** What may find nothing is looked at when it is answered. */
  sent({ args, inTransaction = false }: Command): void {
    if (inTransaction || !TAKING.has(args[0])) this.#touch(args);
  }

  ended(args: readonly string[], reply?: Reply): void {
    const isNothing = reply === null || (Array.isArray(reply) && reply.length === 0);
    if (!isNothing && TAKING.has(args[0])) this.#touch(args);
  }

  #touch(args: readonly string[]): void {
    for (const key of this.#untouched.keys()) if (args.includes(partsOf(key).name)) this.#untouched.delete(key);
  }

  restored(): void {
    const { authority } = this.scene;
    if (authority === null) return;
    this.#compare(authority.server, 'was not restored');
    const { tried } = this;
    if (this.#untouched.size > 0) tried.set(RESTORED, (tried.get(RESTORED) ?? 0) + this.#untouched.size);
  }

  accepting(): void {
    const { mirror } = this.scene;
    if (mirror !== null) this.#compare(mirror.server, 'is not on the mirror any more');
    this.#untouched.clear();
  }

  end(): void {
    this.isLost = false;
    this.#untouched.clear();
  }

  /** Commands that are on their way may have run. */
  #touchWaiting(): void {
    for (const { args, command } of this.load.waiting)
      for (const each of [args, ...(command.queued ?? [])]) this.#touch(each);
  }

  #compare(server: ServerHost, what: string): void {
    this.#touchWaiting();
    for (const [key, value] of this.#untouched) {
      const entry = server.entry(key);
      if (entry !== undefined && plain(entry) === value) continue;
      const { name } = partsOf(key);
      this.scene.fail(`${name}, which the authority had lost, ${what}: ${value}`, [name]);
    }
  }
}
