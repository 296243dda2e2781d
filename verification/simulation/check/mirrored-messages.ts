/** Each message that was published reaches the mirror, too: subscribers may be there. */
export class MirroredMessages {
  readonly #published = new Set<string>();
  readonly #mirrored = new Set<string>();

  published(text: string): void {
    this.#published.add(text);
  }

  /** A server was sent the message by the proxy's mirror. */
  mirrored(text: string): void {
    this.#mirrored.add(text);
  }

  /** The mirror has ended: what was published up to now may have been on its way to it. */
  ended(): void {
    this.#published.clear();
  }

  /** One that the mirror was never sent; null where there is none. Those that it was sent are forgotten. */
  missed(): string | null {
    for (const text of this.#published) {
      if (!this.#mirrored.delete(text)) return text;
      this.#published.delete(text);
    }
    return null;
  }
}
