/**
 * Writers that bypass the proxy where the plan has a fence: while clients get replies of the target, the source refuses
 * their writes. When it is lifted, its users may do what they might before.
 */
import { OTHER } from '../clients/kinds/sessions.js';
import { Guest } from '../clients/guest.js';
import { describe } from '../server/acl.js';
import { ReplyReader, type Reply } from '../clients/replies.js';
import type { Scene } from './scene.js';

/** A source that has restarted has its fence again within so long. */
const RAISED_MS = 1_500;
/** What has to happen in each run. */
export const [LET_IN, REFUSED] = ['a writer was let in', 'a writer was refused'];
/** How often, in ms, one of them tries to write. */
const TRY_MS = [1, 40] as const;
const GATE_MS = [100, 600] as const;

export class FenceCheck {
  /** How often a writer was let in, and how often it was refused. */
  readonly tried = new Map<string, number>();
  readonly #before: ReadonlyMap<string, string>;
  readonly #guest: Guest;
  /** What the gate `users` said first. */
  #gate: string | null = null;

  constructor(private readonly scene: Scene) {
    this.#before = this.#rules;
    const { world, address } = scene;
    this.#guest = new Guest(world.network, address, world.random.fork(), (problem) => scene.fail(problem));
  }

  start(): void {
    this.#guest.start();
    this.#lookAtGate();
    this.#tryAgain();
  }

  #tryAgain(): void {
    const { scene } = this;
    scene.later(scene.random.between(...TRY_MS), () => {
      this.#try();
      this.#tryAgain();
    });
  }

  /** Why users may not do just what they might before; null if they may, or if a fence is wanted. */
  get problem(): string | null {
    if (this.#isWanted !== false) return null;
    const now = this.#rules;
    for (const [name, rules] of this.#before)
      if (now.get(name) !== rules) return `user ${name} has the rules ${now.get(name)}, and had ${rules}`;
    const added = [...now.keys()].filter((name) => !this.#before.has(name));
    return added.length === 0 ? null : `the source has further users: ${added.join(', ')}`;
  }

  get #rules(): ReadonlyMap<string, string> {
    return new Map([...this.scene.source.model.users.values()].map((user) => [user.name, describe(user)]));
  }

  /** Null where an answer to the operator, who raises or lifts it by hand, is not known. */
  get #isWanted(): boolean | null {
    const { stage, handFence, source, proxy } = this.scene;
    // A source that has restarted has no fence until a proxy raises it again.
    if (stage === null && source.startedAt > proxy.startedAt) return null;
    if (handFence !== null) return handFence === 'applied' ? true : null;
    return stage === 'live' || stage === 'rampdown';
  }

  /** What the gate `users` says of users, which nobody changes: the fence does not show there. */
  #lookAtGate(): void {
    const { scene } = this;
    scene.proxy.within((launched) => {
      void launched.shard.evidence().then(({ workloads: [{ gates }] }) => {
        const gate = gates.find(({ name }) => name === 'users');
        if (gate === undefined || gate.answer === 'unknown') return;
        this.#gate ??= gate.evidence;
        // Both servers have the same users, but for the kit's own.
        if (gate.evidence !== this.#gate || gate.evidence.includes(' on the target only'))
          scene.fail(`the gate users says: ${gate.evidence}; and before: ${this.#gate}`);
      });
    });
    scene.later(scene.random.between(...GATE_MS), () => this.#lookAtGate());
  }

  /** A write that changes nothing, by one of the users that may write. */
  #try(): void {
    const { scene } = this;
    const { source } = scene;
    if (!source.isUp || source.stillMs > 0) return;
    const isWanted = this.#isWanted;
    const replies = this.#ask(
      scene.random.chance(0.5) ? ['DEL nothing'] : [`AUTH ${OTHER.name} ${OTHER.password}`, 'DEL nothing'],
    );
    const reply = replies.at(-1)!;
    const what = reply === 0 ? LET_IN : String(reply).startsWith('-NOPERM') ? REFUSED : 'another reply';
    this.tried.set(what, (this.tried.get(what) ?? 0) + 1);
    if (reply === 0 && isWanted === true && scene.now - source.startedAt > RAISED_MS)
      scene.fail(`a writer that bypasses the proxy is let in at the source in stage ${scene.stage}`);
  }

  #ask(commands: readonly string[]): readonly Reply[] {
    const reader = new ReplyReader();
    const replies: Reply[] = [];
    const client = this.scene.source.model.connect(
      (bytes) => reader.feed(bytes),
      () => undefined,
      { host: '10.0.1.8', port: 40_000 },
    );
    for (const command of commands) client.receive(Buffer.from(`${command}\r\n`));
    for (let reply = reader.next(); reply !== undefined; reply = reader.next()) replies.push(reply);
    client.end();
    return replies;
  }
}
