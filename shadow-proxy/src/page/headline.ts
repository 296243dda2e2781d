/** The first line of the page: all clear, or what to do. A pure decision from what all shards need. */
import { count } from '../text/figures.js';
import type { Attention } from './attention.js';

export interface Headline {
  readonly kind: 'yes' | 'no' | 'unknown';
  readonly text: string;
  /** What to do first; null if there is nothing to do. */
  readonly first: Attention | null;
}

export interface ShardNeeds {
  readonly shard: string;
  readonly attention: readonly Attention[];
}

/** @param shards the shards of this process, in the plan's order, including those that are not started yet */
export function headlineOf(shards: readonly ShardNeeds[]): Headline {
  if (shards.length === 0)
    return {
      kind: 'unknown',
      text: 'No shard runs in this process: it is starting, or it is the standby.',
      first: null,
    };
  const all = shards.flatMap(({ shard, attention }) => attention.map((each) => ({ shard, ...each })));
  const acts = all.filter(({ level }) => level === 'act');
  const looks = all.length - acts.length;
  const watch = looks === 0 ? '' : `${count(looks, 'thing')} to watch`;
  if (acts.length === 0)
    return looks === 0
      ? { kind: 'yes', text: 'All clear', first: null }
      : { kind: 'unknown', text: `Nothing to do now, ${watch}`, first: null };
  const { shard, ...first } = acts[0];
  const where = shards.length > 1 ? `Shard ${shard}: ` : '';
  const more = [
    ...(acts.length > 1 ? [`${count(acts.length - 1, 'more thing')} to do`] : []),
    ...(watch === '' ? [] : [watch]),
  ];
  return { kind: 'no', text: `${where}${first.text}${more.length === 0 ? '' : ` (${more.join(', ')})`}`, first };
}

/** The title of the browser's tab. @param migration the plan's name; null if it is not known yet */
export function titleOf(migration: string | null, shards: readonly ShardNeeds[], wantsToken: boolean): string {
  const name = migration ?? 'migration status';
  if (wantsToken) return `Token needed – ${name}`;
  if (migration === null) return name;
  const acts = shards.flatMap(({ attention }) => attention).filter(({ level }) => level === 'act').length;
  const { kind } = headlineOf(shards);
  return `${acts > 0 ? `(${acts}) Act now` : kind === 'yes' ? 'All clear' : shards.length === 0 ? 'No shard' : 'Watch'} – ${name}`;
}
