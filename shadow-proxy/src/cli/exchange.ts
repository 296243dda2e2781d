/** One HTTP request and its whole answer, on a connection of its own, with a limit of time and size. */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Duplex, type Readable, type Writable } from 'node:stream';
import { connect as connectTls } from 'node:tls';

export interface Exchange {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Time from the first byte sent to the last byte received. */
  readonly timeoutMs: number;
  /** The host through which to connect, in the form that `ssh` accepts; null: directly. */
  readonly via: string | null;
}

export interface HttpAnswer {
  readonly status: number;
  /** The content type. */
  readonly type: string | undefined;
  readonly text: string;
}

/** A larger answer is not a proxy's. */
const MAX_BYTES = 256 << 20;

/**
 * Redirects are not followed, because the token is for this address only.
 * @throws {Error} if there is no whole answer in time
 */
export function exchange(url: string, { method, headers, body, timeoutMs, via }: Exchange): Promise<HttpAnswer> {
  const start = url.startsWith('https:') ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const ssh = via === null ? null : new Tunnel(via, new URL(url));
    const request = start(url, {
      ...{ method, headers },
      // With an agent, Node would open a connection of its own.
      ...(ssh === null ? { agent: false } : { createConnection: () => ssh.connection }),
    });
    const timer = setTimeout(() => request.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs);
    const failed = (error: Error): void => {
      clearTimeout(timer);
      if (ssh === null) return reject(error);
      void ssh.end().then((said) => reject(said === '' ? error : new Error(`ssh ${via}: ${said}`)));
    };
    request.once('response', (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        chunks.push(chunk);
        if (bytes > MAX_BYTES) request.destroy(new Error(`the answer is longer than ${MAX_BYTES >> 20} MiB`));
      });
      response.on('error', failed);
      response.on('end', () => {
        clearTimeout(timer);
        void ssh?.end();
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, type: response.headers['content-type'], text });
      });
    });
    request.on('error', failed);
    request.end(body);
  });
}

/** A connection through another host: over the standard input and output of `ssh -W`, which never prompts. */
class Tunnel {
  readonly connection: Duplex;
  readonly #ssh: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #closed: Promise<unknown>;
  #said = '';

  constructor(via: string, { protocol, hostname, port }: URL) {
    const isTls = protocol === 'https:';
    const target = `${hostname}:${port === '' ? (isTls ? 443 : 80) : port}`;
    this.#ssh = spawn('ssh', ['-o', 'BatchMode=yes', '-W', target, '--', via], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#ssh.stderr.on('data', (chunk: Buffer) => (this.#said = `${this.#said}${chunk.toString()}`.slice(-500)));
    this.#closed = new Promise((resolve) => this.#ssh.once('close', resolve).once('error', resolve));
    const stream = Duplex.from({ readable: this.#ssh.stdout, writable: this.#ssh.stdin });
    this.#ssh.on('error', (error) => stream.destroy(error));
    // An early end of the stream emits an error, and then nothing waits for it.
    stream.on('error', () => undefined);
    this.connection = isTls ? connectTls({ socket: stream, servername: hostname }) : stream;
  }

  /** @returns the error message of ssh, in one line */
  async end(): Promise<string> {
    this.connection.destroy();
    this.#ssh.kill();
    await this.#closed;
    return this.#said.trim().replaceAll(/\s*\n\s*/g, '; ');
  }
}
