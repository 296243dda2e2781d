/**
 * A stand-in for the AWS provider that serves its schema: `terraform validate` checks every name and type by it,
 * `terraform test` mocks what it describes. With a cloud in memory it plans and applies, too. Terraform finds it by
 * TF_REATTACH_PROVIDERS, so nothing is downloaded, and no lock file names it.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServiceDefinition,
  type UntypedHandleCall,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { FORCE_NEW_FILE, PROTO_FILE, SCHEMA_FILE } from '../test/files.js';
import { Cloud, type Answers } from './cloud.js';
import type { ForceNew, Path } from './force-new.js';
import { decode, encode, isMembers, type Members, type Value } from './msgpack.js';
import type { Block, Schemas } from './schema.js';

export interface StandIn {
  /** For Terraform's environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly stop: () => void;
}

const ADDRESSES = ['registry.terraform.io/hashicorp/aws', 'registry.opentofu.org/hashicorp/aws'];

/** Serves at loopback until it is stopped. */
export const serveSchema = (): Promise<StandIn> => serve(handlers(readSchemas(), REFUSALS));

/** The same, with a cloud in memory behind it. */
export async function serveCloud(answers: Answers): Promise<StandIn & { readonly cloud: Cloud }> {
  const schemas = readSchemas();
  const facts = JSON.parse(readFileSync(FORCE_NEW_FILE, 'utf8')) as Readonly<Record<string, ForceNew>>;
  const cloud = new Cloud(schemas, facts, answers);
  return { ...(await serve(handlers(schemas, operations(cloud)))), cloud };
}

const readSchemas = (): Schemas => JSON.parse(readFileSync(SCHEMA_FILE, 'utf8')) as Schemas;

async function serve(implementation: Record<string, UntypedHandleCall>): Promise<StandIn> {
  const server = new Server({ 'grpc.max_send_message_length': -1 });
  server.addService(service(), implementation);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  const reattach = {
    Protocol: 'grpc',
    ProtocolVersion: 5,
    Pid: process.pid,
    Test: true,
    Addr: { Network: 'tcp', String: `127.0.0.1:${port}` },
  };
  return {
    env: { TF_REATTACH_PROVIDERS: JSON.stringify(Object.fromEntries(ADDRESSES.map((address) => [address, reattach]))) },
    stop: () => server.forceShutdown(),
  };
}

function service(): ServiceDefinition {
  const { tfplugin5 } = loadPackageDefinition(loadSync(PROTO_FILE, { keepCase: true })) as unknown as {
    tfplugin5: { Provider: { service: ServiceDefinition } };
  };
  return tfplugin5.Provider.service;
}

interface Packed {
  readonly msgpack: Uint8Array;
}

/** What Terraform sends, as far as it is read here. */
interface Request {
  readonly type_name: string;
  readonly config: Packed;
  readonly current_state: Packed;
  readonly prior_state: Packed;
  readonly proposed_new_state: Packed;
  readonly planned_state: Packed;
  readonly raw_state: { readonly json: Uint8Array };
  readonly client_capabilities: { readonly write_only_attributes_allowed: boolean } | null;
}

type Operations = Readonly<Record<string, (request: Request) => object>>;

function handlers({ resources, data }: Schemas, operations: Operations): Record<string, UntypedHandleCall> {
  const schemas = {
    provider: toSchema({ attributes: { region: { type: 'string', optional: true } }, blocks: {} }),
    resource_schemas: mapValues(resources, toSchema),
    data_source_schemas: mapValues(data, toSchema),
    // Once a process is enough.
    server_capabilities: { get_provider_schema_optional: true },
  };
  const answers: Operations = {
    GetSchema: () => schemas,
    PrepareProviderConfig: ({ config }) => ({ prepared_config: config }),
    ValidateResourceTypeConfig: () => ({}),
    ValidateDataSourceConfig: () => ({}),
    UpgradeResourceState: ({ raw_state }) => ({ upgraded_state: { json: raw_state.json } }),
    Stop: () => ({}),
    ...operations,
  };
  return mapValues(
    answers,
    (answer) => (call: ServerUnaryCall<Request, object>, reply: sendUnaryData<object>) =>
      reply(null, answer(call.request)),
  );
}

const error = (summary: string, detail: string): object => ({ diagnostics: [{ severity: 'ERROR', summary, detail }] });

const REFUSALS: Operations = Object.fromEntries(
  [
    'Configure',
    'ReadResource',
    'ReadDataSource',
    'PlanResourceChange',
    'ApplyResourceChange',
    'ImportResourceState',
  ].map((name) => [
    name,
    () =>
      error(
        'This is no AWS provider',
        'It serves the schema of one, for validate and for tests that mock it. Unset TF_REATTACH_PROVIDERS to plan and apply.',
      ),
  ]),
);

const operations = (cloud: Cloud): Operations => ({
  ...REFUSALS,
  Configure: () => ({}),
  // As the provider does for a Terraform before 1.11.
  ValidateResourceTypeConfig: ({ type_name, config, client_capabilities }) => {
    const [argument] = client_capabilities?.write_only_attributes_allowed
      ? []
      : cloud.writeOnly(type_name, membersOf(config)!);
    if (argument === undefined) return {};
    return error(
      'WriteOnly Attribute Not Allowed',
      `The resource contains a non-null value for WriteOnly attribute "${argument}" Write-only attributes are only supported in Terraform 1.11 and later.`,
    );
  },
  ReadResource: ({ current_state }) => ({ new_state: current_state }),
  ReadDataSource: ({ type_name, config }) => ({ state: packed(cloud.read(type_name, membersOf(config)!)) }),
  PlanResourceChange: ({ type_name, prior_state, proposed_new_state }) => {
    const { planned, replaces } = cloud.plan(type_name, membersOf(prior_state), membersOf(proposed_new_state));
    return { planned_state: packed(planned), requires_replace: replaces.map(toPath), legacy_type_system: true };
  },
  ApplyResourceChange: ({ type_name, planned_state, config }) => ({
    new_state: packed(cloud.apply(type_name, membersOf(planned_state), membersOf(config))),
    legacy_type_system: true,
  }),
});

const packed = (value: Value): Packed => ({ msgpack: encode(value) });

function membersOf({ msgpack }: Packed): Members | null {
  const value = decode(msgpack);
  return isMembers(value) ? value : null;
}

const toPath = (path: Path): object => ({
  steps: path.map((step) => (typeof step === 'number' ? { element_key_int: step } : { attribute_name: step })),
});

const toSchema = (block: Block): object => ({ block: toBlock(block) });

const toBlock = ({ attributes, blocks }: Block): object => ({
  attributes: Object.entries(attributes).map(([name, { type, ...flags }]) => ({
    name,
    type: Buffer.from(JSON.stringify(type)),
    ...flags,
  })),
  block_types: Object.entries(blocks).map(([type_name, { nesting, min = 0, max = 0, block }]) => ({
    type_name,
    nesting: nesting.toUpperCase(),
    min_items: min,
    max_items: max,
    block: toBlock(block),
  })),
});

const mapValues = <T, U>(record: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));

// As a program: says what to put into the environment, and serves until it is ended.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { env } = await serveSchema();
  process.stdout.write(
    `${Object.entries(env)
      .map(([name, value]) => `export ${name}='${value}'`)
      .join('\n')}\n`,
  );
}
