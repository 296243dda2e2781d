/**
 * docs/commands.md: what the proxy does with each command, from the tables that it uses (`npm run docs:commands`).
 *
 * Room: docs: the generated pages of docs/.
 * Called by: no room.
 * Calls: text, route, plan, command, compare, telemetry, cli.
 */
import { HARMLESS } from '../command/forms.js';
import { refusal, type Handling } from '../command/policy.js';
import { CommandTable, type CommandSpec } from '../command/table.js';
import { RULES } from '../compare/compare.js';

/** The handlings of commands without keys, in the order of the page. */
const SECTIONS: readonly (readonly [handling: Handling, title: string, text: string])[] = [
  [
    'script',
    'Scripts',
    'Routed by the keys that they declare, which should be all the keys that they touch. A script is repeated where its text proves that it does the same on both servers ' +
      'and touches declared keys only, and where its user is unrestricted (`+@all ~* &*`). Of any other, of one that failed, and of functions, the keys that changed are copied. ' +
      'A script without declared keys that may write runs alone, as those below; it is refused while workloads have different authorities. Where it cannot be repeated, ' +
      'the keys that its text names (as texts, or as arguments) are copied; where it does not name them, every workload is suspect. `FCALL`, `FCALL_RO`, `EVAL_RO` and ' +
      '`EVALSHA_RO` are counted as `unsupported` while the mirror has no such command.',
  ],
  ['broadcast', 'Both servers', 'Sent to the authority of `default`, then, as far as it concerns it, to its mirror.'],
  [
    'exclusive',
    'Alone',
    'Run when every lane is empty: they touch keys that they do not name, or another database, or change what scripts can be run. `COPY` with `DB` is one, too, and a ' +
      'script without declared keys. `FLUSHALL`, `FLUSHDB` and `SWAPDB` are refused where workloads have different authorities, and where shards share a target. Where the target may hold keys that the proxy did not write, they run on the source alone, and are refused while the target answers. ' +
      'Those about functions reach the mirror where it knows functions.',
  ],
  [
    'subscribe',
    'Subscriptions',
    "Sent over a connection of the client's own to the authority of the workload that has the channel (`channels` in the plan). A pattern belongs to the workload " +
      'whose plan has that very pattern, else to `default`. They move with the workload, without a message lost or doubled. Refused inside `MULTI`.',
  ],
  [
    'publish',
    'Messages',
    'Sent to the authority of the workload that has the channel, then to the mirror in every stage that writes twice; the client gets the receivers at the ' +
      'authority. A message that the mirror lost is not sent again. On a shared target, messages are not sent while the shard subscribes at its source: only other shards would get them. `SPUBLISH` is not sent to KeyDB, which has no sharded channels; it is counted as `unsupported`.',
  ],
  [
    'local',
    'Answered by the proxy',
    'They are about a connection, and clients share the connections to the servers. The authority is asked where it decides: passwords, databases, permissions.',
  ],
  [
    'authority',
    'Answered by the authority alone',
    'Sent to the authority of `default`; neither replicated nor compared: they are about a server, its users, or all its keys. `DEBUG` is refused with a subcommand that may stop a server or change its data.\n\n' +
      'If shards share a target and it is the authority, these four are about the keys of the shard only. Inside `MULTI` and in scripts they are refused.\n\n' +
      '- `SCAN`, `KEYS`: the reply of the server is filtered; a page of `SCAN` may be empty.\n' +
      '- `DBSIZE`: a `SCAN` of the whole database on its own connection (0.7 to 2.2 s for 500,000 keys on two busy cores). Exact while no client writes and no table of the server shrinks.\n' +
      '- `RANDOMKEY`: 32 tries, then a `SCAN`.',
  ],
];

const INSIDE_MULTI = [
  '## Inside `MULTI`',
  'Commands are answered `QUEUED` by the proxy and sent with `EXEC`, as one transaction on one lane. The transaction may select databases, move keys between them and empty them:',
  '| command | what the proxy does | what it costs |\n| --- | --- | --- |\n' +
    [
      [
        '`SELECT`',
        'each command runs in its database. When `EXEC` has run, the client is in the last one; after `DISCARD`, or an `EXEC` that did not run, in the one from before. ' +
          'A database that the server does not have is an error in the reply of `EXEC`, as with Redis. ' +
          'One that only the other server lacks is refused by name from `dualwrite` on, also outside `MULTI`',
        'the client’s next commands wait for the reply of `EXEC`. A transaction with keys in one database takes the ' +
          'lane of that database; one with keys in several runs alone: all clients wait, about two round trips',
      ],
      ['`MOVE`, `COPY … DB`', 'as outside `MULTI`', 'the transaction runs alone'],
      [
        '`FLUSHDB`, `FLUSHALL`',
        'as outside `MULTI`, and refused where they are refused there',
        'the transaction runs alone',
      ],
    ]
      .map((row) => `| ${row.join(' | ')} |`)
      .join('\n'),
  'Redis takes these inside `MULTI`, too, and the proxy refuses them with ' +
    '`ERR shadow-proxy: … inside MULTI is not supported`; `EXEC` then answers `EXECABORT`, and nothing has run. Clients that use them change before they connect to the proxy.',
  '| command | why | instead |\n| --- | --- | --- |\n' +
    [
      [
        '`SWAPDB`',
        'after it, all connections to KeyDB select their databases again, and suspects of one database become suspects of both: the proxy does this only outside `MULTI`',
        'send it outside `MULTI`',
      ],
      [
        '`SCRIPT FLUSH`, `FUNCTION LOAD`, `FUNCTION DELETE`, `FUNCTION RESTORE`, `FUNCTION FLUSH`',
        'they change what scripts may call, and run alone',
        'send them outside `MULTI`',
      ],
      ['`CONFIG SET`', 'it goes to both servers', 'send it outside `MULTI`'],
      ['`SUBSCRIBE` and its like', 'messages come over a connection of the client’s own', 'send them outside `MULTI`'],
      [
        '`SCRIPT KILL`, `FUNCTION KILL`, `AUTH`, `HELLO`, `CLIENT REPLY`, `CLIENT KILL`, `CLIENT UNBLOCK`',
        'the proxy answers them at once',
        'send them outside `MULTI`',
      ],
    ]
      .map((row) => `| ${row.join(' | ')} |`)
      .join('\n'),
  '`SCRIPT LOAD` is taken: the other server is given the text when it is to run it. `SAVE` is refused as Redis 7 does; on KeyDB it is queued.',
].join('\n\n');

const title = (name: string): string => `\`${name.replace('|', ' ').toUpperCase()}\``;
const list = (specs: readonly CommandSpec[]): string => specs.map(({ name }) => title(name)).join(', ');
const rulesOf = ({ name }: CommandSpec): string[] =>
  RULES.filter((rule) => rule.name !== 'error-wording' && rule.appliesTo(name)).map((rule) => rule.name);

/** The page, as Markdown. */
export function renderCommands(): string {
  const { all } = new CommandTable();
  // Without a subcommand, the server answers with an explanation.
  const specs = all.filter(({ subcommands }) => subcommands === null);
  const keyed = specs.filter(({ handling }) => handling === 'keyed');
  const writes = keyed.filter(({ write }) => write);
  const repeated = writes.filter(({ effect }) => effect === null);
  const reads = keyed.filter(({ write }) => !write);
  return (
    [
      head(specs),
      '## Writes\n\nSent to the authority, then to the mirror in every stage with dual writes. A write that the authority refused is not replicated.',
      `### Replicated as sent\n\nWith the same state they have the same effect, and their replies are compared. Replies of these may differ by a rule: ${exceptions(repeated)}.\n\n${list(repeated)}`,
      `### Replicated as their effect\n\n${effects(specs)}`,
      '## Reads\n\nSent to both servers, and their replies compared, in `shadow` and `live`.',
      `### Replies that must be equal\n\n${list(reads.filter((spec) => rulesOf(spec).length === 0 && bothHave(spec)))}`,
      `### Replies that may differ\n\nAs the named rule allows ([comparison-rules.md](comparison-rules.md)), and no further.\n\n${differing(reads)}`,
      `### Not compared: KeyDB 6.3.4 has no such command\n\nAnswered by the authority and counted as \`unsupported\`. Clients that use them break when a workload goes \`live\`.\n\n${list(reads.filter((spec) => !bothHave(spec)))}`,
      ...SECTIONS.map(
        ([handling, name, text]) =>
          `## ${name}\n\n${text}\n\n${list(specs.filter((spec) => spec.handling === handling))}`,
      ),
      INSIDE_MULTI,
      `## Refused\n\nAnswered with an error that begins with \`ERR shadow-proxy:\` and says what to do.\n\n${refused(specs)}`,
      `## Supported by one server only\n\n${SUPPORT}\n\n${forms(specs)}\n\nThe gate \`unsupported\` lets these pass:\n\n${harmless()}`,
      '## Unknown\n\nA command that is not on this page is sent to the authority of `default` alone, and counted as `unsupported` by its name. Inside `MULTI` it is refused.',
    ].join('\n\n') + '\n'
  );
}

/** The writes whose replies may differ, by rule. */
const exceptions = (writes: readonly CommandSpec[]): string =>
  RULES.map(({ name }) => [name, writes.filter((spec) => rulesOf(spec).includes(name))] as const)
    .filter(([, ofRule]) => ofRule.length > 0)
    .map(([name, ofRule]) => `\`${name}\` is for ${list(ofRule)}`)
    .join('; ');

const SUPPORT =
  'What Redis 7.0.15 accepts and KeyDB 6.3.4 refuses, or answers with other elements, and the other way round. The list is generated: ' +
  'each call that `COMMAND DOCS` describes was sent to both servers. Each use is counted by the name in the first column, by workload, in every ' +
  'stage, and keeps the gate `unsupported` closed. Commands that the proxy refuses are left out.';

/** The forms that each server lacks. */
function forms(specs: readonly CommandSpec[]): string {
  const rows = specs
    .filter(({ handling }) => handling !== 'refused')
    .flatMap((spec) => (spec.forms ?? []).filter(({ isNewer }) => !isNewer));
  const lines = rows.map(({ name, lacks, how, example, says }) => {
    const answer = how === 'reply' ? 'a reply with other elements' : `\`${says.replaceAll('`', '')}\``;
    return `| ${name} | \`${example}\` | ${lacks === 'target' ? 'KeyDB' : 'Redis'}: ${answer} |`;
  });
  return `| name | call that was sent | who does not support it |\n| --- | --- | --- |\n${lines.join('\n')}`;
}

const harmless = (): string =>
  Object.entries(HARMLESS)
    .map(([name, reason]) => `- ${name}: ${reason}`)
    .join('\n');

const bothHave = ({ inSource, inTarget }: CommandSpec): boolean => inSource && inTarget;

function head(specs: readonly CommandSpec[]): string {
  const count = (handling: Handling): number => specs.filter((spec) => spec.handling === handling).length;
  const kinds: readonly Handling[] = [
    'keyed',
    'script',
    'broadcast',
    'exclusive',
    'subscribe',
    'publish',
    'local',
    'authority',
    'refused',
  ];
  const rows = kinds.map((handling) => `| \`${handling}\` | ${count(handling)} |`);
  return [
    '# Commands',
    '<!-- Written by `npm run docs:commands` from shadow-proxy/src/command. Do not edit. -->',
    'What the proxy does with each command of Redis 7.0.15 and KeyDB 6.3.4. For other versions, what a server really has is taken from its own `COMMAND`.',
    `| handling | commands |\n| --- | --- |\n${rows.join('\n')}`,
  ].join('\n\n');
}

function effects(specs: readonly CommandSpec[]): string {
  const byText = new Map<string, CommandSpec[]>();
  for (const spec of specs)
    if (spec.effect !== null)
      byText.set(spec.effect.description, [...(byText.get(spec.effect.description) ?? []), spec]);
  const rows = [...byText].map(([description, ofText]) => `| ${list(ofText)} | ${description} |`);
  return `| command | sent to the mirror |\n| --- | --- |\n${rows.join('\n')}`;
}

function differing(reads: readonly CommandSpec[]): string {
  const rows = reads
    .filter((spec) => rulesOf(spec).length > 0 && bothHave(spec))
    .map(
      (spec) =>
        `| ${title(spec.name)} | ${rulesOf(spec)
          .map((rule) => `\`${rule}\``)
          .join(', ')} |`,
    );
  return `| command | rules |\n| --- | --- |\n${rows.join('\n')}`;
}

function refused(specs: readonly CommandSpec[]): string {
  const byReason = new Map<string, CommandSpec[]>();
  for (const spec of specs.filter(({ handling }) => handling === 'refused')) {
    const [, reason] = /is not supported yet: (.*)$/.exec(refusal(spec, Buffer.alloc(0), [], [], 0)!)!;
    byReason.set(reason, [...(byReason.get(reason) ?? []), spec]);
  }
  const rows = [...byReason].map(([reason, ofReason]) => `| ${list(ofReason)} | ${reason} |`);
  return `| commands | what the error says |\n| --- | --- |\n${rows.join('\n')}`;
}
