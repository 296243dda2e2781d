/** environments/aws, applied to a cloud in memory: what a change of its variables would do. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Answers, Cloud } from '../../schema/cloud.js';
import type { Members, Value } from '../../schema/msgpack.js';
import { serveCloud } from '../../schema/provider.js';
import { TERRAFORM } from '../files.js';
import type { Program, Result } from '../program.js';
import { Workspace } from '../workspace.js';

export const AWS = join(TERRAFORM, 'environments', 'aws');

export type Variables = Readonly<Record<string, unknown>>;

export type Action = 'create' | 'delete' | 'update' | 'replace';

export interface Change {
  readonly address: string;
  readonly type: string;
  readonly action: Action;
}

/** What AWS would say of the things that are there already. */
const ANSWERS: Answers = {
  aws_subnet: ({ id }) => ({
    vpc_id: 'vpc-0a',
    availability_zone: `eu-central-1${String(id).slice(-1)}`,
    map_public_ip_on_launch: false,
  }),
  aws_ec2_instance_type: () => ({ supported_architectures: ['arm64'], memory_size: 16384, default_vcpus: 2 }),
  aws_ami: () => ({ architecture: 'arm64', root_device_name: '/dev/xvda' }),
  aws_region: () => ({ region: 'eu-central-1' }),
  aws_partition: () => ({ partition: 'aws' }),
  aws_vpc: () => ({ cidr_block: '10.0.0.0/16' }),
  aws_caller_identity: () => ({ account_id: '123456789012' }),
};

/** A complete set of variables. */
export const VARIABLES: Variables = {
  plan_file: join(AWS, 'tests', 'plans', 'checkout.yaml'),
  vpc_id: 'vpc-0a',
  subnet_ids: ['subnet-0a', 'subnet-0b'],
  ami_id: 'ami-0123456789abcdef0',
  zone: { name: 'cache.internal' },
  client_security_group_ids: ['sg-0aaa'],
  bucket_name: 'checkout-cache-reports',
  source_secrets: { 'source-proxy': 'arn:aws:secretsmanager:eu-central-1:123456789012:secret:redis-AbCdEf' },
  names: { checkout: { shard: 'cache-0', to: 'proxy' } },
  sources: {
    'cache-0': { version: '6.2', memory_bytes: 1073741824 },
    'cache-1': { version: '6.2', memory_bytes: 1073741824 },
  },
  loadgen: { hosts: 1 },
};

interface Made {
  readonly id: string;
  readonly tags: Readonly<Record<string, string>> | null;
  readonly [attribute: string]: unknown;
}

/** What a state file has of that type. */
function madeOf(file: string, type: string): readonly Made[] {
  if (!existsSync(file)) return [];
  const { resources } = JSON.parse(readFileSync(file, 'utf8')) as State;
  return resources
    .filter((resource) => resource.mode === 'managed' && resource.type === type)
    .flatMap(({ instances }) => instances.map(({ attributes }) => attributes));
}

interface State {
  readonly resources: readonly {
    readonly mode: string;
    readonly type: string;
    readonly instances: readonly { readonly attributes: Made }[];
  }[];
}

/** Of the filter that a data source has under that name; `*` is any text. */
function matches({ filter }: Members, name: string, value: string): boolean {
  const filters = filter as unknown as readonly { readonly name: string; readonly values: readonly string[] }[];
  const { values } = filters.find((each) => each.name === name)!;
  return values.some((pattern) => new RegExp(`^${pattern.split('*').map(escaped).join('.*')}$`).test(value));
}

const escaped = (text: string): string => text.replaceAll(/[^\w-]/g, '\\$&');

/** Instances and volumes that are there: the state has them all, by what was applied last. */
const standing = (file: () => string): Answers => {
  const named = (type: string, config: Members): Value =>
    ({
      ids: madeOf(file(), type)
        .filter(({ tags }) => matches(config, 'tag:Name', tags?.Name ?? ''))
        .map(({ id }) => id),
    }) as unknown as Value;
  return {
    aws_instances: (config) => named('aws_instance', config) as Members,
    aws_ebs_volumes: (config) => named('aws_ebs_volume', config) as Members,
    aws_instance: ({ instance_id }) =>
      pick(
        madeOf(file(), 'aws_instance').find(({ id }) => id === instance_id)!,
        ['id', 'tags', 'subnet_id', 'placement_group', 'disable_api_termination'],
      ),
    aws_ebs_volume: (config) =>
      pick(
        madeOf(file(), 'aws_ebs_volume').find(({ id }) => matches(config, 'volume-id', id))!,
        ['id', 'tags', 'size', 'availability_zone'],
      ),
  };
};

const pick = (made: Made, names: readonly string[]): Members =>
  Object.fromEntries(names.map((name) => [name, made[name]])) as Members;

export class Environment {
  #runs = 0;

  private constructor(
    private readonly workspace: Workspace,
    readonly cloud: Cloud,
  ) {}

  static async open(t: TestContext, terraform: Program, answers: Answers = {}, directory = AWS): Promise<Environment> {
    let state = '';
    const { env, stop, cloud } = await serveCloud({ ...ANSWERS, ...standing(() => state), ...answers });
    t.after(() => stop());
    const workspace = new Workspace(t, terraform, directory, env);
    state = workspace.state;
    const { code, output } = await workspace.init();
    assert.equal(code, 0, output);
    return new Environment(workspace, cloud);
  }

  async apply(variables: Variables): Promise<void> {
    const { code, output } = await this.#run('apply', variables, '-auto-approve');
    assert.equal(code, 0, output);
  }

  /** Goes on from a state that another run, or another release, has made. */
  adopt(text: string): void {
    writeFileSync(this.workspace.state, text);
  }

  /** As it stands in the state: what Terraform keeps. */
  stateText(): string {
    return readFileSync(this.workspace.state, 'utf8');
  }

  /** The saved plan, in JSON. */
  async planText(variables: Variables): Promise<string> {
    const file = `${this.workspace.state}.plan`;
    const { code, output } = await this.#run('plan', variables, `-out=${file}`);
    assert.equal(code, 0, output);
    return (await this.workspace.run('show', '-json', file)).output;
  }

  /** What a plan would do, or why it is refused. */
  async plan(variables: Variables): Promise<readonly Change[] | string> {
    const { output } = await this.#run('plan', variables, '-json');
    const messages = output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Message);
    const error = messages.find((message) => message['@level'] === 'error');
    if (error !== undefined) return error.diagnostic?.detail ?? error['@message'];
    return messages.flatMap(({ type, change }) =>
      type === 'planned_change' && change !== undefined && isOurs(change)
        ? [{ address: change.resource.addr, type: change.resource.resource_type, action: change.action as Action }]
        : [],
    );
  }

  #run(command: string, variables: Variables, ...more: string[]): Promise<Result> {
    const file = `${this.workspace.state}.${++this.#runs}.tfvars.json`;
    writeFileSync(file, JSON.stringify(variables));
    const options = ['-no-color', '-input=false', '-refresh=false', '-lock=false', `-state=${this.workspace.state}`];
    return this.workspace.run(command, ...options, `-var-file=${file}`, ...more);
  }
}

const isOurs = ({ resource, action }: NonNullable<Message['change']>): boolean =>
  resource.resource_type.startsWith('aws_') && action !== 'read';

interface Message {
  readonly '@level': string;
  readonly '@message': string;
  readonly type: string;
  readonly change?: {
    readonly resource: { readonly addr: string; readonly resource_type: string };
    /** Or the reading of a data source. */
    readonly action: Action | 'read';
  };
  readonly diagnostic?: { readonly detail: string };
}
