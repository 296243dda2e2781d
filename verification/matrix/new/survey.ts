/** `npm run matrix -- --new`: what this release does not know of a server, as a list of work. */
import { Redis } from 'ioredis';
import { Prober } from '../../../shadow-proxy/src/command/form-prober.js';
import { generateRelease } from '../../../shadow-proxy/src/command/generate-release.js';
import { isNewer, READABLE_RDB } from '../../../shadow-proxy/src/command/known.js';
import { refusal } from '../../../shadow-proxy/src/command/policy.js';
import { softwareOf, type Software } from '../../../shadow-proxy/src/command/release.js';
import { CommandTable } from '../../../shadow-proxy/src/command/table.js';
import { startKeydb, startRedis, type LocalServer } from '../../../shadow-proxy/src/local/servers.js';
import { locateArguments } from '../../../shadow-proxy/src/resp/decode.js';
import { encodeCommand } from '../../../shadow-proxy/src/resp/encode.js';
import { titleOf } from '../servers.js';
import { unknownOf, type Known } from './known.js';
import { docsOf, errorsOf, infoFields, payloadsOf, settingsOf, unique, type Facts } from './probe.js';

export interface Survey {
  readonly software: Software;
  readonly facts: Facts;
  /** What is to be done, a line each. */
  readonly work: readonly string[];
}

const fieldsOf = (info: string): Map<string, string> =>
  new Map([...info.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name, value]) => [name, value]));

/**
 * Starts the program, with a KeyDB (a KeyDB with a Redis), and asks them.
 * @throws {ServerMissing} where this machine has no KeyDB
 */
export async function survey(path: string, isKeydb: boolean, known: Known): Promise<Survey> {
  const variable = isKeydb ? 'KEYDB_SERVER' : 'REDIS_SERVER';
  const before = process.env[variable];
  process.env[variable] = path;
  let source: LocalServer | undefined;
  let target: LocalServer | undefined;
  try {
    source = await startRedis();
    target = await startKeydb();
    return await surveyOf(source, target, isKeydb, known);
  } finally {
    await source?.stop();
    await target?.stop();
    if (before === undefined) delete process.env[variable];
    else process.env[variable] = before;
  }
}

async function surveyOf(source: LocalServer, target: LocalServer, isKeydb: boolean, known: Known): Promise<Survey> {
  const subject = isKeydb ? target : source;
  const client = new Redis(subject.port, subject.host, { lazyConnect: true });
  const [prober, documented] = [new Prober(subject.url), new Prober(source.url)];
  try {
    const info = await client.info();
    const software = softwareOf(fieldsOf(info), isKeydb);
    const settings = await settingsOf(client);
    // KeyDB has no COMMAND DOCS: it is asked what the Redis lists.
    const docs = await docsOf(documented);
    const errors = await errorsOf(prober, docs);
    const { unread, unordered, version } = await payloadsOf(prober, docs);
    const facts: Facts = { info: infoFields(info), ...settings, errors: unique([...errors.keys()]) };
    const work = [
      ...(isNewer(software)
        ? [
            `version: ${titleOf(software)} is not known: WANTED in verification/matrix/servers.ts, NEWEST_KNOWN in command/known.ts`,
          ]
        : []),
      ...(isKeydb ? await commandsOfKeydb(client) : await commandsOf(source.url, target.url)),
      ...(READABLE_RDB.includes(version)
        ? []
        : [`RDB: its DUMP is RDB ${version}, which is not read: copy/rdb/types.ts, and READABLE_RDB`]),
      ...[...unread].map(([problem, call]) => `RDB: ${problem} (${call}): copy/rdb/types.ts`),
      ...unordered
        .filter((call) => !isRefused(call))
        .map((call) => `replies: ${call} does not have exactly one: policy.ts must refuse it`),
      ...unknownOf(software, facts, known, errors),
    ];
    return { software, facts, work };
  } finally {
    client.disconnect();
    prober.close();
    documented.close();
  }
}

/** Whether the proxy refuses the call. */
function isRefused(call: string): boolean {
  const frame = encodeCommand(call.split(' '));
  const [starts, ends]: [number[], number[]] = [[], []];
  const argc = locateArguments(frame, 0, starts, ends);
  const spec = new CommandTable().find(frame, starts, ends, argc);
  return spec !== undefined && spec.refusable && refusal(spec, frame, starts, ends, argc) !== null;
}

/** Commands, arities and options that no file of a release has. */
async function commandsOf(sourceUrl: string, targetUrl: string): Promise<string[]> {
  const { commands, arities, forms, unknown } = await generateRelease(sourceUrl, targetUrl, true);
  return [
    ...commands.map(([name]) => `command: ${name} is new: generate-release.js writes its row`),
    ...arities.map(([name, arity]) => `command: ${name} has arity ${arity} now: generate-release.js writes its row`),
    ...unknown.map((line) => `command: ${line}`),
    ...forms.map(([, , , , , example]) => `option: ${example}: KeyDB refuses it: generate-release.js writes its row`),
  ];
}

async function commandsOfKeydb(client: Redis): Promise<string[]> {
  const table = new CommandTable();
  const listed = (await client.call('COMMAND')) as readonly (readonly [string, ...unknown[]])[];
  const names = listed.map(([name]) => name.toLowerCase()).filter((name) => !/^(post|host:)$/.test(name));
  return unique(names.filter((name) => table.byName(name)?.inTarget !== true)).map(
    (name) => `command: ${name} is new: generate.js writes its row`,
  );
}
