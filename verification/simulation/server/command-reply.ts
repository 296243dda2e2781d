/** COMMAND and its subcommands, from the table of commands. */
import { keysOf } from './command-table.js';
import { lower } from './options.js';
import { array, arrayOf, bulk, bulks, EMPTY_ARRAY, integer, nilArray, Refusal, setOf, simple } from './reply.js';
import type { Client, Command, Run } from './state.js';
import type { Ruled } from './users.js';

/** First key, last key and step, as COMMAND shows them beside the specifications. */
function legacyKeys({ keySpecs }: Command): readonly [number, number, number] {
  let [first, last, step] = [0, 0, 0];
  for (const spec of keySpecs) {
    const [, begin, find = '0/1/0'] = spec.split(' ');
    if (!/^\d+$/.test(begin) || find.startsWith('#')) continue;
    const [to, by] = find.split('/').map(Number);
    const end = to < 0 ? to : Number(begin) + to;
    if (first === 0) [first, last, step] = [Number(begin), end, by];
    else last = end < 0 ? end : Math.max(last, end);
  }
  return [first, last, step];
}

const FLAGS_OF_KEYDB: Readonly<Record<string, string>> = { no_async_loading: '', no_auth: 'no_auth' };

function describe(command: Command, { server, protocol }: Client): string {
  const isRedis = server.engine === 'redis';
  const flags = [...command.flags].filter((flag) => flag !== '' && (isRedis || FLAGS_OF_KEYDB[flag] !== ''));
  const { categories } = command as Command & Ruled;
  const fields = [
    bulk(command.name),
    integer(command.arity),
    setOf(flags.length, protocol) + flags.map(simple).join(''),
    ...legacyKeys(command).map(integer),
    setOf(categories.length, protocol) + categories.map((each) => simple(`@${each}`)).join(''),
  ];
  if (!isRedis) return array(fields);
  const subcommands = [...(command.subcommands?.values() ?? [])].map((each) =>
    describe(each, { server, protocol } as Client),
  );
  return array([...fields, EMPTY_ARRAY, EMPTY_ARRAY, array(subcommands)]);
}

/** @param table the commands of the server */
export function commandReply(table: () => ReadonlyMap<string, Command>): Run {
  // A command stands there in lower and in upper case.
  const all = (): Command[] => [...new Set(table().values())];
  const find = (name: string): Command | undefined => {
    const [container, subcommand] = lower(name).split('|');
    const found = table().get(container);
    return subcommand === undefined ? found : found?.subcommands?.get(subcommand);
  };
  /** By protocol: a proxy asks for it at each start. */
  const whole = new Map<number, string>();
  const describeAll = (client: Client): string => {
    const known = whole.get(client.protocol);
    if (known !== undefined) return known;
    const made = array(all().map((command) => describe(command, client)));
    whole.set(client.protocol, made);
    return made;
  };
  return (client, args) => {
    const { protocol } = client;
    if (args.length === 1) return describeAll(client);
    switch (lower(args[1])) {
      case 'count':
        return integer(all().length);
      case 'info': {
        const names = args.slice(2);
        if (names.length === 0) return describeAll(client);
        return array(
          names.map((name) => {
            const found = find(name);
            return found === undefined ? nilArray(protocol) : describe(found, client);
          }),
        );
      }
      case 'list':
        return bulks(all().map(({ name }) => name));
      case 'docs':
        return protocol === 2 ? EMPTY_ARRAY : '%0\r\n';
      case 'getkeys': {
        const command = table().get(lower(args[2]));
        if (command === undefined) throw new Refusal('ERR Invalid command specified');
        const given = args.slice(2);
        const keys = keysOf(command, given).map(({ index }) => given[index]);
        if (keys.length === 0) throw new Refusal('ERR The command has no key arguments');
        return arrayOf(keys.length) + keys.map(bulk).join('');
      }
      default:
        throw new Refusal(`ERR Unknown subcommand or wrong number of arguments for '${args[1]}'. Try COMMAND HELP.`);
    }
  };
}
