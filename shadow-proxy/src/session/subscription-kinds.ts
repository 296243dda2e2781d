/** What a client can be subscribed to, and by which commands. */
export const KINDS = ['channel', 'pattern', 'shard'] as const;
export type Kind = (typeof KINDS)[number];

export const COMMANDS: Readonly<Record<Kind, { readonly join: string; readonly leave: string }>> = {
  channel: { join: 'SUBSCRIBE', leave: 'UNSUBSCRIBE' },
  pattern: { join: 'PSUBSCRIBE', leave: 'PUNSUBSCRIBE' },
  shard: { join: 'SSUBSCRIBE', leave: 'SUNSUBSCRIBE' },
};

/** Ignores a reply. */
export const IGNORE = (): void => undefined;
