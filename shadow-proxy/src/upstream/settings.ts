/** The settings of two servers (`CONFIG GET`): which differ, which of those clients can see, and which are unknown. */
import { VISIBLE_SETTINGS, type VisibleSetting } from '../plan/plan.js';
import { isError, text, type Reply, errorText } from '../resp/decode.js';
import { SIDES, type Side } from '../route/stage.js';
import { count } from '../text/figures.js';
import { parseInfo } from './info.js';
import type { Server } from './server.js';

/** What a server says of its settings. */
export interface ServerSettings {
  readonly values: ReadonlyMap<string, string>;
  /** The error to `CONFIG GET`; null if the server answered. */
  readonly refusal: string | null;
}

export interface SettingDifference {
  readonly name: string;
  readonly source: string;
  readonly target: string;
}

/** A setting that clients can see, and that was not compared. */
export interface UnreadSetting {
  readonly name: VisibleSetting;
  readonly side: Side;
}

export interface SettingsComparison {
  /** Differences that clients can see. */
  readonly visible: readonly (SettingDifference & { readonly name: VisibleSetting })[];
  /** Differences in speed only: clients get the same replies. */
  readonly tuning: readonly SettingDifference[];
  readonly unread: readonly UnreadSetting[];
  readonly refusals: Readonly<Record<Side, string | null>>;
}

/** Differences in these are shown, and block nothing. */
const TUNING = [
  'active-expire-effort',
  'appendfsync',
  'appendonly',
  'dynamic-hz',
  'hz',
  'lazyfree-lazy-eviction',
  'lazyfree-lazy-expire',
  'lazyfree-lazy-server-del',
  'lazyfree-lazy-user-del',
  'lazyfree-lazy-user-flush',
  'list-compress-depth',
  'list-max-ziplist-size',
  'maxmemory',
  'save',
] as const;

export async function readSettings(server: Server): Promise<ServerSettings> {
  const reply = await server.ask('CONFIG', 'GET', '*');
  if (!isError(reply)) return { values: settingsOf(reply), refusal: null };
  // INFO shows the policy to users who may not CONFIG.
  const info = parseInfo(text(await server.ask('INFO', 'memory')));
  const policy = info.get('maxmemory_policy');
  return { values: new Map(policy === undefined ? [] : [['maxmemory-policy', policy]]), refusal: errorText(reply) };
}

/** @param reply of `CONFIG GET`, which is a list of names and values */
export function settingsOf({ items }: Reply): Map<string, string> {
  const words = (items ?? []).map(text);
  return new Map(words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1]] as const] : [])));
}

/**
 * Pure.
 * @param clientOutputBytes `limits.clientOutputBytes`: the proxy closes a client before a larger limit of a server does
 */
export function compareSettings(
  settings: Readonly<Record<Side, ServerSettings>>,
  clientOutputBytes: number,
): SettingsComparison {
  const [source, target] = [settings.source.values, settings.target.values];
  const readFromBoth = <Name extends string>(name: Name): readonly (SettingDifference & { readonly name: Name })[] =>
    source.has(name) && target.has(name) ? [{ name, source: source.get(name)!, target: target.get(name)! }] : [];
  const visible = VISIBLE_SETTINGS.flatMap(readFromBoth).flatMap((each) => {
    if (each.name === 'client-output-buffer-limit') return outputLimits(each, clientOutputBytes);
    return (DIFFERS[each.name] ?? differs)(each.source, each.target) ? [each] : [];
  });
  return {
    visible,
    tuning: TUNING.flatMap(readFromBoth).filter((each) => differs(each.source, each.target)),
    unread: SIDES.flatMap((side) =>
      VISIBLE_SETTINGS.filter((name) => !settings[side].values.has(name)).map((name) => ({ name, side })),
    ),
    refusals: { source: settings.source.refusal, target: settings.target.refusal },
  };
}

const differs = (source: string, target: string): boolean => source !== target;

const DIFFERS: Readonly<Partial<Record<VisibleSetting, typeof differs>>> = {
  // More connections than the source allows are no difference for clients.
  maxclients: (source, target) => Number(target) < Number(source),
  // Each letter is a class of events; servers write the letters in different orders.
  'notify-keyspace-events': (source, target) => [...source].sort().join('') !== [...target].sort().join(''),
};

/**
 * Classes of clients whose unread replies have a lower limit on the target than on the source. The limit over time does
 * not matter: the proxy reads replies at once, however slowly clients read. The limits of replicas do not matter
 * either.
 */
function outputLimits<D extends SettingDifference>(difference: D, clientOutputBytes: number): D[] {
  const [source, target] = [difference.source, difference.target].map(limitsOf);
  const bytes = (limit: string | undefined): number => {
    const hard = Number(limit?.split(' ')[0]);
    return Math.min(hard > 0 ? hard : Infinity, clientOutputBytes);
  };
  const less = ['normal', 'pubsub'].filter((of) => bytes(target.get(of)) < bytes(source.get(of)));
  if (less.length === 0) return [];
  const shown = (limits: ReadonlyMap<string, string>): string =>
    less.map((of) => `${of} ${limits.get(of) ?? '0 0 0'}`).join(' ');
  return [{ ...difference, source: shown(source), target: shown(target) }];
}

/** By class of clients: hard limit, soft limit and seconds. */
function limitsOf(value: string): Map<string, string> {
  const words = value.split(' ');
  return new Map(
    words.flatMap((word, i) => (i % 4 === 0 ? [[word, words.slice(i + 1, i + 4).join(' ')] as const] : [])),
  );
}

const MOST = 60;
const quoted = (value: string): string => JSON.stringify(value.length > MOST ? `${value.slice(0, MOST)}…` : value);

/** `hz (source "10", target "50")`. */
export const describeDifference = ({ name, source, target }: SettingDifference): string =>
  `${name} (source ${quoted(source)}, target ${quoted(target)})`;

/** Eviction policies of Redis 8.6, by the time of the last write, which no other server has. */
const BY_LAST_WRITE = /-lrm$/;

/** How to give the target the source's setting. */
export function remedyOf({ name, source }: SettingDifference): string {
  if (name === 'databases') return `databases ${source} in the target's configuration file, and restart it`;
  const set = `CONFIG SET ${name} ${JSON.stringify(source)}`;
  if (name !== 'maxmemory-policy' || !BY_LAST_WRITE.test(source)) return set;
  const nearest = source.replace(BY_LAST_WRITE, '-lru');
  return `${set}; a target before Redis 8.6 has no such policy: CONFIG SET ${name} "${nearest}" is the nearest, and gates.acceptSettings must list ${name}`;
}

/** Which settings were not compared, and why. */
export function describeUnread(unread: readonly UnreadSetting[], refusals: SettingsComparison['refusals']): string {
  return SIDES.flatMap((side) => {
    const names = unread.filter((each) => each.side === side).map(({ name }) => name);
    if (names.length === 0) return [];
    const why = refusals[side];
    return [
      `the ${side} ${why === null ? 'does not show' : `refuses CONFIG GET (${why}), which hides`} ${count(names.length, 'setting')} that clients can see: ${names.join(', ')}`,
    ];
  }).join('; ');
}
