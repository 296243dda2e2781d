/**
 * The admin HTTP: opens its address, admits a request, reads its body, and answers by the table of `routes.ts`. The
 * files of the status page are public, because they contain nothing about the shards. So is the status code of the
 * probes, for load balancers.
 *
 *   path in the table, or a file of the page? ─▶ admitted? ─▶ method taken? ─▶ body right? ─▶ handler
 *          404                                     401, 403       405            400, 413, 415
 *
 * Room: admin: the admin HTTP: who may ask, its routes.
 * Called by: shard, cli.
 * Calls: text, io, route, plan, telemetry, storage, copy, stages, health, page.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { z } from 'zod';
import { createHttpServer, type HttpServer } from '../io/http.js';
import type { PageFile } from '../page/files.js';
import { ADMIN_CONNECTIONS } from '../plan/descriptors.js';
import { formatAddress, isLoopback } from '../plan/endpoint.js';
import { Metrics } from '../telemetry/metrics.js';
import { refusalOf } from './admission.js';
import { AdminError, asAdminError } from './errors.js';
import type { NotStarted, ReceiverSnapshot } from '../telemetry/snapshot.js';
import { PROBES, routeAt, ROUTES, type AdminContext, type Answer, type SharedState } from './routes.js';
import type { ShardControl } from './shard-control.js';
import { printable, printableLines } from '../text/printable.js';

export { AdminError };

export interface AdminOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Read at each request, so that a reload may change it; null: no token is required. */
  readonly token: () => string | null;
  readonly shards: () => readonly ShardControl[];
  /** The plan's name; by default `migration`. */
  readonly migration?: () => string;
  /** The status page's files by path; null for other paths. Not asked for a path of the table. */
  readonly page?: (path: string) => PageFile | null | Promise<PageFile | null>;
  /** Names of the shards that the process takes over when another process ends. */
  readonly waiting?: () => readonly string[];
  /** Shards that are not started yet, and why. Each second they are tried again. */
  readonly starting?: () => readonly NotStarted[];
  /** The receivers of notifications, for metrics. */
  readonly receivers?: () => readonly ReceiverSnapshot[];
  /** The durable state of each shard, for a standby. */
  readonly states?: () => Promise<readonly SharedState[]>;
}

const MAX_BODY = 64 * 1024;
const REQUEST_MS = 10_000;
/** Methods for the page's files. */
const READ = ['GET', 'HEAD'];

/**
 * Headers of every answer: a browser must not guess its type, frame it, embed it, or send the address of the page to
 * others.
 */
const HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
};

export class Admin {
  readonly #context: AdminContext;
  readonly #server: HttpServer;

  private constructor(private readonly options: AdminOptions) {
    const { shards, migration = () => 'migration', waiting = () => [], starting = () => [] } = options;
    const { states = () => Promise.resolve([]), receivers = () => [] } = options;
    const metrics = new Metrics(() => ({
      shards: shards().map((shard) => shard.scrape()),
      waiting: waiting(),
      receivers: receivers(),
    }));
    this.#context = { migration, shards, waiting, starting, states, metrics };
    this.#server = createHttpServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (request, response) => {
      void this.#answer(request, response);
    });
    // Descriptors are shared with clients, so the number of connections is limited.
    this.#server.maxConnections = ADMIN_CONNECTIONS;
  }

  /** @throws {AdminError} code `listen` */
  static async start(options: AdminOptions): Promise<Admin> {
    if (!isLoopback(options.host) && !options.token()) {
      throw new AdminError(
        'listen',
        `the admin address ${formatAddress(options)} is beyond loopback: set admin.token or admin.tokenFile`,
      );
    }
    const admin = new Admin(options);
    admin.#server.listen({ host: options.host, port: options.port });
    try {
      await once(admin.#server, 'listening');
    } catch (error) {
      const why =
        (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
          ? 'is taken'
          : `cannot be opened: ${(error as Error).message}`;
      throw new AdminError(
        'listen',
        `the admin address ${formatAddress(options)} ${why}: set another admin.listen (each process needs its own)`,
      );
    }
    return admin;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    try {
      const { pathname, query } = targetOf(request);
      const route = routeAt(pathname);
      const file = route === undefined ? ((await this.options.page?.(pathname)) ?? null) : null;
      if (file === null && route === undefined)
        throw new AdminError(
          'not-found',
          `there is no path ${pathname}. The paths: ${Object.keys(ROUTES).join(', ')}`,
          404,
        );
      const known = this.#admit(request, file !== null, PROBES.has(pathname));
      if (file !== null) return sendFile(request, response, pathname, file);
      checkMethod(request, response, pathname, Object.keys(route!));
      const { schema, handle } = route![request.method!];
      const body = schema && (await readBody(request, schema));
      const answer = await handle(this.#context, { query, body });
      send(response, known ? answer : withoutNames(answer));
    } catch (error) {
      refuse(request, response, error);
    }
  }

  /**
   * False for a probe without the token, which gets only the status code.
   * @throws {AdminError} if the request is not admitted
   */
  #admit({ method = '', headers }: IncomingMessage, isPublic: boolean, isProbe: boolean): boolean {
    const refusal = refusalOf({ method, headers, isPublic }, this.options.token());
    if (refusal === null) return true;
    // If a token is sent, it must be the right one.
    const asks = READ.includes(method) && headers.authorization === undefined;
    if (isProbe && refusal.code === 'unauthorized' && asks) return false;
    throw new AdminError(refusal.code, refusal.message, refusal.status);
  }
}

/** The answer to a probe: whether all shards are ready, and whether this is a standby. */
function withoutNames({ status = 200, body }: Answer): Answer {
  const { reason } = body as { readonly reason?: string };
  return { status, body: { ok: status === 200, ...(reason !== undefined && { reason }) } };
}

/** Splits the URL into path and query. */
function targetOf({ url = '/' }: IncomingMessage): { pathname: string; query: URLSearchParams } {
  const [pathname, query = ''] = url.split('?', 2);
  return { pathname, query: new URLSearchParams(query) };
}

/** @throws {AdminError} code `method` */
function checkMethod(
  request: IncomingMessage,
  response: ServerResponse,
  pathname: string,
  allowed: readonly string[],
): void {
  if (allowed.includes(request.method ?? '')) return;
  response.setHeader('allow', allowed.join(', '));
  throw new AdminError('method', `${pathname} takes ${allowed.join(' or ')}`, 405);
}

function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  pathname: string,
  { type, content, policy }: PageFile,
): void {
  checkMethod(request, response, pathname, READ);
  response.writeHead(200, { 'content-type': type, 'content-security-policy': policy, 'cache-control': 'no-cache' });
  response.end(content);
}

function send(response: ServerResponse, { status = 200, body, contentType }: Answer): void {
  if (typeof body === 'string') {
    response.writeHead(status, { 'content-type': contentType ?? 'text/plain' });
    response.end(body);
    return;
  }
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(printableLines(JSON.stringify(body)) + '\n');
}

function refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const { status, code, message, details } = asAdminError(error);
  if (status === 401) response.setHeader('www-authenticate', 'Bearer');
  // The rest of a refused body is not read.
  if (!request.complete) response.setHeader('connection', 'close');
  send(response, { status, body: { error: { code, message, ...details } } });
}

/** @throws {AdminError} if the body is no JSON, is too large, or does not match the schema */
async function readBody(request: IncomingMessage, schema: z.ZodType): Promise<unknown> {
  // A form of a web page cannot send this type without asking first, and this server does not answer that question.
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
    throw new AdminError('bad-request', 'send the body with "Content-Type: application/json"', 415);
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY) throw new AdminError('too-large', `the body is over ${MAX_BODY} bytes`, 413);
    chunks.push(chunk);
  }
  let body: unknown;
  try {
    body = JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch (error) {
    throw new AdminError('bad-request', `the body is no JSON: ${printable((error as Error).message)}`, 400);
  }
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'the body'}: ${issue.message}`);
  throw new AdminError('bad-request', problems.join('; '), 400);
}
