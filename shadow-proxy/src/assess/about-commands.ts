/** Findings about commands and data that clients use and KeyDB lacks. */
import { HARMLESS, formsOf, supports, titleOf, type Form } from '../command/forms.js';
import { COMMANDS } from '../command/table.generated.js';
import { isSince } from '../upstream/identity.js';
import { count, number } from '../text/figures.js';
import { isClusters } from './about-cluster.js';
import { MANAGED_ONLY, type Finding, type Question } from './finding.js';

const NO_SERVER = { version: '', isKeydb: true, commands: new Set<string>() };

/** KeyDB 6.3.4's commands, used if there is no target to ask. */
const KEYDB_COMMANDS = new Set(COMMANDS.filter(([, , targetArity]) => targetArity !== 0).map(([name]) => name));

/** Commands with keys, without those that this tool itself sends. */
const ON_KEYS = new Set(
  COMMANDS.filter(([name, , , , ...keys]) => keys.length > 0 && !name.includes('|') && name !== 'type').map(
    ([name]) => name,
  ),
);

/** `readInstance` sends the first one; KeyDB answers QUIT, but does not list it. */
const NO_LACK = ['function|list', 'quit'];

/** Modules that come with Redis 8, whether used or not: their types and commands. */
const BUNDLED: Readonly<Record<string, { readonly types: RegExp; readonly commands: RegExp }>> = {
  vectorset: {
    types: /^vectorset$/,
    commands: /^v(add|card|dim|emb|getattr|info|ismember|links|rand|range|rem|set|sim)/,
  },
  ReJSON: { types: /^ReJSON/, commands: /^json\./ },
  search: { types: /^(ft_|trietype)/, commands: /^ft\./ },
  timeseries: { types: /^TSDB/, commands: /^ts\./ },
  bf: { types: /^(MBbloom|CMSk|TopK|TDIS)/, commands: /^(bf|cf|cms|topk|tdigest)\./ },
};

/** The engine of EVAL, which Valkey 9.1 lists as a module. */
const VALKEY_SCRIPTS = 'lua';

/** Data of a source that KeyDB cannot hold: keys of other types, and modules that may have such data. */
export function modules({ sources }: Question): Finding[] {
  const found: Finding[] = [];
  for (const { label, version, software, modules: listed, calls, keySample } of sources) {
    const loaded = software.name === 'valkey' ? listed.filter((name) => name !== VALKEY_SCRIPTS) : listed;
    const types = [...keySample.foreignTypes];
    if (types.length > 0)
      found.push({
        about: 'types',
        weight: 'no-go',
        what: `${label} has keys of types that KeyDB does not have: ${types.map(([type, keys]) => `${type} (${number(keys)} of ${count(keySample.keys, 'sampled key')})`).join(', ')}`,
        means: 'they cannot be copied: backfill names each of them, and they block the change to live',
      });
    const used = (name: string): boolean => {
      const bundled = isSince(version, [8, 0]) && Object.hasOwn(BUNDLED, name) ? BUNDLED[name] : undefined;
      if (bundled === undefined) return true;
      return (
        types.some(([type]) => bundled.types.test(type)) ||
        [...calls].some(([command, times]) => times > 0 && bundled.commands.test(command))
      );
    };
    const [inUse, unused] = [loaded.filter(used), loaded.filter((name) => !used(name))];
    if (inUse.length > 0)
      found.push({
        about: 'modules',
        weight: 'no-go',
        what: `modules are loaded in ${label}: ${inUse.join(', ')}`,
        means: 'KeyDB has none of their types and commands',
      });
    if (unused.length > 0)
      found.push({
        about: 'modules',
        weight: 'note',
        what: `${label} brings modules that nobody seems to use: ${unused.join(', ')}; no call of theirs was counted, and no key of theirs is among ${count(keySample.keys, 'sampled key')}`,
        means: 'backfill names each key that it cannot copy',
      });
  }
  return found;
}

/** Hashes whose fields have a TTL. */
export function fieldTtls({ sources }: Question): Finding[] {
  return sources
    .filter((source) => source.fieldTtls > 0)
    .map((source) => ({
      about: 'field TTLs',
      weight: 'no-go',
      what: `${source.label} has ${count(source.fieldTtls, 'hash', 'hashes')} with fields that have a TTL`,
      means:
        'KeyDB cannot hold them: expire whole keys instead, or set hashFieldTtl: strip in the plan, which copies them without these TTLs',
    }));
}

/** Commands that clients use and the target does not know. */
export function newerCommands({ sources, target, cluster }: Question): Finding[] {
  // Servers before 7.0 do not name their subcommands.
  const namesSubcommands = [...(target?.commands ?? [])].some((name) => name.includes('|'));
  const known = (name: string): boolean =>
    target === null || (name.includes('|') && !namesSubcommands) ? KEYDB_COMMANDS.has(name) : target.commands.has(name);
  const isLeftOut = (name: string): boolean =>
    NO_LACK.includes(name) || titleOf(name) in HARMLESS || (cluster !== null && isClusters(name));
  const used = new Map<string, number>();
  for (const source of sources) {
    for (const [name, calls] of source.calls)
      if (calls > 0 && !known(name) && !isLeftOut(name)) used.set(name, (used.get(name) ?? 0) + calls);
  }
  const libraries = sources.reduce((total, source) => total + source.functions, 0);
  const found: Finding[] = [];
  if (used.size > 0) {
    const named = [...used]
      .sort((a, b) => b[1] - a[1])
      .map(([name, calls]) => `${name.replace('|', ' ')} (${count(calls, 'call')})`);
    found.push({
      about: 'commands',
      weight: 'no-go',
      what: `the target lacks commands that clients use: ${named.join(', ')}`,
      means:
        'the proxy translates their writes while Redis answers; once KeyDB answers, they fail: change the applications first',
    });
  }
  if (libraries > 0)
    found.push({
      about: 'functions',
      weight: 'no-go',
      what: `${count(libraries, 'library', 'libraries')} of functions ${libraries === 1 ? 'is' : 'are'} loaded`,
      means: 'KeyDB has none: make them scripts first',
    });
  return found;
}

/** Options, argument forms and replies of commands that the target knows. */
export function options({ sources, target }: Question): Finding[] {
  const isLacking = (form: Form, name: string): boolean =>
    !form.whole &&
    form.lacks === 'target' &&
    !(form.name in HARMLESS) &&
    (!form.isNewer || sources.some((source) => supports(form, name, 'source', source))) &&
    !supports(form, name, 'target', target ?? NO_SERVER);
  const lacking = (name: string): Form[] => (formsOf(name) ?? []).filter((form) => isLacking(form, name));
  const found: Finding[] = [];
  const used = [
    ...new Set(sources.flatMap(({ calls }) => [...calls].flatMap(([name, times]) => (times > 0 ? [name] : [])))),
  ].sort();
  const options = used
    .map((name) => ({ name, forms: lacking(name).filter(({ how }) => how === 'refused') }))
    .filter(({ forms }) => forms.length > 0);
  const seen = sources.flatMap(({ monitored }) => (monitored === null ? [] : [monitored]));
  if (seen.length < sources.length) {
    const named = options.map(
      ({ name, forms }) => `${titleOf(name)} (${forms.map((form) => form.name.slice(name.length + 1)).join(', ')})`,
    );
    if (named.length > 0)
      found.push({
        about: 'options',
        weight: 'note',
        what: `clients use commands of which the target refuses some options, and commandstats does not count options: ${named.join('; ')}`,
        means:
          'run assess with --monitor 10s (it costs throughput), or watch the gate unsupported while the proxy runs',
      });
    return found;
  }
  const names = new Set(options.flatMap(({ forms }) => forms.map(({ name }) => name)));
  const counts = new Map<string, number>();
  for (const { forms } of seen)
    for (const [name, times] of forms) if (names.has(name)) counts.set(name, (counts.get(name) ?? 0) + times);
  const looked = `${number(seen.reduce((total, { commands }) => total + commands, 0))} commands seen in ${Math.max(...seen.map(({ ms }) => ms / 1000)).toFixed(1)} s`;
  if (counts.size > 0)
    found.push({
      about: 'options',
      weight: 'no-go',
      what: `the target refuses options that clients use: ${[...counts].map(([name, times]) => `${name} (${count(times, 'call')})`).join(', ')}; ${looked}`,
      means:
        'the proxy translates their writes while Redis answers; once KeyDB answers, they fail: change the applications first',
    });
  else if (seen.some(({ commands }) => commands > 0))
    found.push({
      about: 'options',
      weight: 'note',
      what: `no option that the target refuses was seen, in ${looked}`,
      means: 'this was a short sample: the gate unsupported counts all of them while the proxy runs',
    });
  else
    found.push({
      about: 'options',
      weight: 'unknown',
      what: 'MONITOR showed no command at all',
      means: 'run it again while clients are active',
    });
  return found;
}

/** If a server has run no command on a key for a client, it does not show which ones clients use. */
export const unseenCommands = ({ sources }: Question): Finding[] =>
  sources
    .filter(({ calls }) => [...calls].every(([name, times]) => times === 0 || !ON_KEYS.has(name)))
    .map(({ label }) => ({
      about: 'commands',
      weight: 'unknown',
      what: `${label} has counted no command on a key since it started, or since CONFIG RESETSTAT`,
      means: 'run assess again after clients were active: which of their commands the target lacks is unknown',
    }));

export const managed = ({ requires }: Question): Finding[] =>
  requires.map((name) => ({
    about: 'managed',
    weight: 'no-go',
    what: `needed: ${MANAGED_ONLY[name]}`,
    means: 'only a managed service offers it, and none offers KeyDB',
  }));

export function scripts({ sources }: Question): Finding[] {
  const calls = sources.reduce(
    (total, source) =>
      total +
      ['eval', 'evalsha', 'eval_ro', 'evalsha_ro'].reduce((sum, name) => sum + (source.calls.get(name) ?? 0), 0),
    0,
  );
  return calls === 0
    ? []
    : [
        {
          about: 'scripts',
          weight: 'note',
          what: `scripts ran ${count(calls, 'time')}`,
          means:
            "they run under KeyDB's global lock, as they do in Redis's one thread; where a script touches undeclared keys, the proxy copies the keys instead of replicating the script",
        },
      ];
}
