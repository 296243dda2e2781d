/**
 * Messages of channels, as a subscriber gets them: each at most once, and in the order in which they were published. A
 * message whose PUBLISH was answered before another was sent comes before it.
 */

interface Published {
  readonly channel: string;
  readonly sentAt: number;
  /** Infinity while the reply has not come, and where it was lost. */
  answeredAt: number;
}

/** So many messages are remembered. */
const REMEMBERED = 4_000;

export class Messages {
  /** Messages that subscribers have got. */
  received = 0;
  readonly #published = new Map<string, Published>();
  /** By subscriber: since when it is subscribed, what it got, and by channel when the latest of it was sent. */
  readonly #subscribers = new Map<
    string,
    { readonly since: number; readonly got: Set<string>; readonly latest: Map<string, number> }
  >();

  sent(channel: string, text: string, at: number): void {
    this.#published.set(text, { channel, sentAt: at, answeredAt: Infinity });
    if (this.#published.size > REMEMBERED) this.#published.delete(this.#published.keys().next().value!);
  }

  answered(text: string, at: number): void {
    const published = this.#published.get(text);
    if (published !== undefined) published.answeredAt = at;
  }

  subscribed(subscriber: string, at: number): void {
    this.#subscribers.set(subscriber, { since: at, got: new Set(), latest: new Map() });
  }

  cutOff(subscriber: string): void {
    this.#subscribers.delete(subscriber);
  }

  /** @returns what is wrong; null where nothing is */
  receive(subscriber: string, channel: string, text: string): string | null {
    const state = this.#subscribers.get(subscriber);
    const published = this.#published.get(text);
    if (state === undefined) return `${subscriber} got ${text} on ${channel} before it was subscribed`;
    if (published === undefined) return null;
    this.received++;
    if (state.got.has(text)) return `${subscriber} got ${text} on ${channel} twice`;
    state.got.add(text);
    const latest = state.latest.get(channel) ?? 0;
    if (published.answeredAt < latest) return `${subscriber} got ${text} on ${channel} behind a later message`;
    state.latest.set(channel, Math.max(latest, published.sentAt));
    return null;
  }

  /**
   * A message on one of the channels that was published while a subscriber was subscribed and that it has not got.
   * @returns null where none is
   */
  missed(...channels: readonly string[]): string | null {
    for (const [subscriber, { since, got }] of this.#subscribers)
      for (const [text, { channel, sentAt, answeredAt }] of this.#published)
        if (channels.includes(channel) && sentAt > since && answeredAt !== Infinity && !got.has(text))
          return `${subscriber} never got ${text}`;
    return null;
  }
}
