/**
 * A stand-in for the AWS provider that serves its schema and does nothing: `terraform validate` checks every name and
 * type by it, `terraform test` mocks what it describes. Terraform finds it by TF_REATTACH_PROVIDERS, so nothing is
 * downloaded, and no lock file names it.
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
import { PROTO_FILE, SCHEMA_FILE } from '../test/files.js';
import type { Block, Schemas } from './schema.js';

export interface StandIn {
  /** For Terraform's environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly stop: () => void;
}

const ADDRESSES = ['registry.terraform.io/hashicorp/aws', 'registry.opentofu.org/hashicorp/aws'];

/** Serves at loopback until it is stopped. */
export async function serveSchema(): Promise<StandIn> {
  const server = new Server({ 'grpc.max_send_message_length': -1 });
  server.addService(service(), handlers(JSON.parse(readFileSync(SCHEMA_FILE, 'utf8')) as Schemas));
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

type Request = Readonly<Record<string, unknown>>;

function handlers({ resources, data }: Schemas): Record<string, UntypedHandleCall> {
  const schemas = {
    provider: toSchema({ attributes: { region: { type: 'string', optional: true } }, blocks: {} }),
    resource_schemas: mapValues(resources, toSchema),
    data_source_schemas: mapValues(data, toSchema),
    // Once a process is enough.
    server_capabilities: { get_provider_schema_optional: true },
  };
  const refuse = {
    diagnostics: [
      {
        severity: 'ERROR',
        summary: 'This is no AWS provider',
        detail:
          'It serves the schema of one, for validate and for tests that mock it. Unset TF_REATTACH_PROVIDERS to plan and apply.',
      },
    ],
  };
  const answers: Record<string, (request: Request) => object> = {
    GetSchema: () => schemas,
    PrepareProviderConfig: ({ config }) => ({ prepared_config: config }),
    ValidateResourceTypeConfig: () => ({}),
    ValidateDataSourceConfig: () => ({}),
    UpgradeResourceState: ({ raw_state }) => ({ upgraded_state: { json: (raw_state as { json: Buffer }).json } }),
    Stop: () => ({}),
    ...Object.fromEntries(
      [
        'Configure',
        'ReadResource',
        'ReadDataSource',
        'PlanResourceChange',
        'ApplyResourceChange',
        'ImportResourceState',
      ].map((name) => [name, () => refuse]),
    ),
  };
  return mapValues(
    answers,
    (answer) => (call: ServerUnaryCall<Request, object>, reply: sendUnaryData<object>) =>
      reply(null, answer(call.request)),
  );
}

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
