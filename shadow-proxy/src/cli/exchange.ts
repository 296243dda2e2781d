/** One HTTP request and its whole answer, on a connection of its own, within a time and a size. */
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';

export interface Exchange {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** From the first byte sent to the last byte received. */
  readonly timeoutMs: number;
}

export interface HttpAnswer {
  readonly status: number;
  /** Of the content. */
  readonly type: string | undefined;
  readonly text: string;
}

/** More is no answer of a proxy. */
const MAX_BYTES = 256 << 20;

/**
 * Redirects are answers, and not followed: the token is for this address alone.
 * @throws {Error} where there is no whole answer in time
 */
export function exchange(url: string, { method, headers, body, timeoutMs }: Exchange): Promise<HttpAnswer> {
  const start = url.startsWith('https:') ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = start(url, { method, headers, agent: false });
    const timer = setTimeout(() => request.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs);
    const failed = (error: Error): void => {
      clearTimeout(timer);
      reject(error);
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
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, type: response.headers['content-type'], text });
      });
    });
    request.on('error', failed);
    request.end(body);
  });
}
