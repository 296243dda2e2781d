/**
 * A cloud in memory behind the stand-in provider: plans by the provider's schema and force-new.json, makes up what only
 * AWS knows, and keeps nothing: Terraform's state is all there is. So `terraform plan` says what it would replace.
 */
import type { ForceNew } from './force-new.js';
import { replacingPaths, type Path } from './force-new.js';
import { isMembers, UNKNOWN, type Members, type Value } from './msgpack.js';
import type { Attribute, Block, Schemas, Type } from './schema.js';

/** What a data source gives; the rest is made up. */
export type Answers = Readonly<Record<string, (config: Members) => Members>>;

export interface Sent {
  readonly type: string;
  readonly argument: string;
  readonly value: Value;
}

export class Cloud {
  /** Values of write-only arguments, as they came. */
  readonly sent: Sent[] = [];
  #made = 0;

  constructor(
    private readonly schemas: Schemas,
    private readonly forceNew: Readonly<Record<string, ForceNew>>,
    private readonly answers: Answers,
  ) {}

  read(type: string, config: Members): Members {
    const answer = this.answers[type]?.(config) ?? {};
    return this.#completed(this.schemas.data[type], { ...config, ...answer }, true) as Members;
  }

  /** Write-only arguments that are set, for a Terraform that would keep them. */
  writeOnly(type: string, config: Members): string[] {
    return writeOnlyOf(this.schemas.resources[type]).filter((name) => config[name] !== null);
  }

  plan(type: string, before: Members | null, proposed: Members | null): { planned: Members | null; replaces: Path[] } {
    if (proposed === null) return { planned: null, replaces: [] };
    const planned = planOf(this.schemas.resources[type], proposed, before === null) as Members;
    return { planned, replaces: before === null ? [] : replacingPaths(this.forceNew[type], before, planned) };
  }

  apply(type: string, planned: Members | null, config: Members | null): Members | null {
    if (planned === null || config === null) return null;
    const block = this.schemas.resources[type];
    for (const argument of writeOnlyOf(block))
      if (config[argument] !== null) this.sent.push({ type, argument, value: config[argument] });
    return this.#completed(block, planned, false) as Members;
  }

  /** With something in the place of what is not known, or of what was not given. */
  #completed(block: Block, value: Value, alsoAbsent: boolean): Value {
    return overBlock(block, value, (attribute, member, name) =>
      member === UNKNOWN || (alsoAbsent && member === null && attribute.computed)
        ? this.#madeUp(attribute.type, name)
        : member,
    );
  }

  #madeUp(type: Type, name: string): Value {
    if (typeof type !== 'string') return type[0] === 'map' ? {} : type[0] === 'object' ? null : [];
    if (type === 'bool') return false;
    if (type === 'number') return 0;
    const number = ++this.#made;
    if (name === 'arn' || name.endsWith('_arn')) return `arn:aws:made-up:eu-central-1:123456789012:thing/${number}`;
    return name.endsWith('_ip') ? `10.9.${number >> 8}.${number & 0xff}` : `${name}-${number}`;
  }
}

function planOf(block: Block, proposed: Value, isNew: boolean): Value {
  const planned = overBlock(block, proposed, (attribute, member) => {
    if (attribute.write_only) return null;
    return isNew && attribute.computed && member === null ? UNKNOWN : member;
  });
  return isMembers(planned) && 'tags_all' in planned ? { ...planned, tags_all: planned.tags ?? {} } : planned;
}

const writeOnlyOf = (block: Block): string[] =>
  Object.entries(block.attributes).flatMap(([name, { write_only }]) => (write_only ? [name] : []));

/** Each attribute changed, those of nested blocks, too. */
function overBlock(
  block: Block,
  value: Value,
  change: (attribute: Attribute, member: Value, name: string) => Value,
): Value {
  if (Array.isArray(value)) return value.map((element: Value) => overBlock(block, element, change));
  if (!isMembers(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      name in block.attributes
        ? [name, change(block.attributes[name], member, name)]
        : [name, overBlock(block.blocks[name].block, member, change)],
    ),
  );
}
