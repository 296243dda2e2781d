/** The AWS provider's schema, as far as the modules use it: the shape of schema.json. */

/** As Terraform writes types in JSON. */
export type Type = string | readonly [string, Type] | readonly ['object', Readonly<Record<string, Type>>];

export interface Attribute {
  readonly type: Type;
  readonly required?: boolean;
  readonly optional?: boolean;
  readonly computed?: boolean;
  /** Sent to the provider, and kept neither in plans nor in the state. */
  readonly write_only?: boolean;
}

export interface NestedBlock {
  readonly nesting: 'single' | 'list' | 'set';
  /** 0: any number. */
  readonly min?: number;
  readonly max?: number;
  readonly block: Block;
}

export interface Block {
  readonly attributes: Readonly<Record<string, Attribute>>;
  readonly blocks: Readonly<Record<string, NestedBlock>>;
}

export interface Schemas {
  /** Of the AWS provider. */
  readonly version: string;
  readonly resources: Readonly<Record<string, Block>>;
  readonly data: Readonly<Record<string, Block>>;
}
