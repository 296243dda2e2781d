/**
 * docs/plan.md: every field of a plan file, from the schema that checks it (`npm run schema`).
 */
import { planJsonSchema } from '../plan/schema.js';

interface Node {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Node[];
  readonly items?: Node;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
}

/** What the titles in the schema mean. */
const KINDS: Readonly<Record<string, string>> = {
  name: 'letters, digits, dot, dash and underscore; at most 63, the first a letter or digit',
  path: 'of a file or directory, relative to the plan',
  patterns:
    'a list of at least one glob pattern, as `KEYS` takes them: `*`, `?`, `[a-z]`, `\\` before what stands for itself',
  size: 'a number of bytes, or text such as `64MiB` (`B`, `KiB`, `MiB`, `GiB`)',
  milliseconds: 'a whole number from 1',
  share: 'a number of percent above 0, at most 100, such as 10, or text such as `10 %`',
  command: 'a program and its arguments, a list of texts that no shell reads',
  URL: '`redis://[user[:password]@]host[:port][/db]`; `rediss://…` with TLS; `redis+sentinel://…@h1:p1,h2:p2/master[/db]` for the master that Sentinels name, `rediss+sentinel://…` with TLS to the Sentinels and to the server. `${NAME}` in user or password is that environment variable, taken as it is',
};

/** A mapping of the plan, and every place at which it may occur. */
interface Section {
  readonly paths: string[];
  readonly node: Node;
}

/** The page, as Markdown. @throws {Error} if a field has no description, or a title is not in KINDS */
export function renderPlan(): string {
  const root = planJsonSchema() as Node;
  const sections: Section[] = [];
  collect(root, '', sections);
  return (
    [
      '# The plan file',
      '<!-- Written by `npm run schema` from shadow-proxy/src/plan/schema.ts. Do not edit. -->',
      'Every field of `migration.yaml`. [migration.example.yaml](../migration.example.yaml) shows them at work, with every default; editors complete from ' +
        '`shadow-proxy/migration.schema.json`. A field that is not here is refused, with its line and the likely slip: `npx --no-install shadow-proxy --plan migration.yaml --check`. ' +
        'Which of them a running proxy takes over: [A changed plan](decisions/031-plan-reload.md).',
      `| a value | is |\n| --- | --- |\n${Object.entries(KINDS)
        .map(([kind, is]) => `| ${kind} | ${is} |`)
        .join('\n')}`,
      ...sections.map((section) => `## ${heading(section)}\n\n${table(section, sections)}`),
    ].join('\n\n') + '\n'
  );
}

/** Fields first, then the mappings in them. A mapping that occurs at several places is described once. */
function collect(node: Node, path: string, sections: Section[]): void {
  const known = sections.find((section) => JSON.stringify(section.node.properties) === JSON.stringify(node.properties));
  if (known) return void known.paths.push(path);
  sections.push({ paths: [path], node });
  for (const [name, field] of Object.entries(node.properties!)) {
    const inner = mappingOf(field);
    if (inner) collect(inner, pathTo(path, name, field), sections);
  }
}

const pathTo = (path: string, name: string, field: Node): string =>
  `${path === '' ? '' : `${path}.`}${name}${field.items ? '[]' : ''}`;

/** The mapping that is the field's value, its entry, or one of its alternatives. */
const mappingOf = (field: Node): Node | undefined =>
  [field, field.items, ...(field.anyOf ?? [])].find((node) => node?.properties !== undefined);

const heading = ({ paths }: Section): string =>
  paths[0] === '' ? 'The file' : paths.map((path) => `\`${path}\``).join(', ');
/** The anchor that GitHub makes of a heading. */
const anchor = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-');

function table({ paths, node }: Section, sections: readonly Section[]): string {
  const rows = Object.entries(node.properties!).map(([name, field]) => {
    const path = pathTo(paths[0], name, field);
    const text = field.description;
    if (text === undefined) throw new Error(`${path} has no description in plan/schema.ts`);
    const below = sections.find((section) => section.paths.includes(path));
    return `| \`${name}\` | ${allowed(field, below)} | ${byDefault(name, field, node)} | ${escape(text)} |`;
  });
  return `| field | value | default | what it is |\n| --- | --- | --- | --- |\n${rows.join('\n')}`;
}

function byDefault(name: string, field: Node, { required = [] }: Node): string {
  if (required.includes(name)) return '**required**';
  if (field.default === undefined) return '–';
  return mappingOf(field) && !field.items ? 'see there' : `\`${JSON.stringify(field.default)}\``;
}

function allowed(node: Node, below?: Section): string {
  if (node.title !== undefined) {
    if (KINDS[node.title] === undefined) throw new Error(`KINDS of docs/plan.ts does not tell what a ${node.title} is`);
    return node.title;
  }
  if (node.const !== undefined) return `\`${JSON.stringify(node.const)}\``;
  if (node.enum) return node.enum.map((value) => `\`${String(value)}\``).join(', ');
  if (node.anyOf) return node.anyOf.map((option) => allowed(option, below)).join(', or ');
  if (node.properties) return `[mapping](#${anchor(heading(below!))})`;
  if (node.items?.enum) return `list of ${allowed(node.items)}`;
  if (node.items)
    return `list of ${node.items.properties ? allowed(node.items, below).replace('mapping', 'mappings') : node.items.title === 'name' ? 'names' : 'texts'}`;
  return `${WORDS[node.type!]}${range(node)}`;
}

const WORDS: Readonly<Record<string, string>> = {
  object: 'mapping of names to texts',
  string: 'text',
  number: 'number',
  integer: 'whole number',
  boolean: '`true`, `false`',
};

function range({ minimum, exclusiveMinimum, maximum }: Node): string {
  const least =
    exclusiveMinimum !== undefined ? ` above ${exclusiveMinimum}` : minimum !== undefined ? ` from ${minimum}` : '';
  // If there is no maximum, zod writes the largest whole number that a double can hold.
  return `${least}${maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER ? ` to ${maximum}` : ''}`;
}

const escape = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
