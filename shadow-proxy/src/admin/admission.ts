/**
 * Who may use the admin HTTP. Besides requests without the token, two kinds are refused. Other web pages in the
 * operator's browser may send requests: their Origin is not ours. A page may also let its own host name resolve to
 * 127.0.0.1 to reach a proxy without a token: its Host is not loopback's.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback, parseAddress } from '../plan/endpoint.js';

export interface IncomingRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** Files that anybody may read, because they contain nothing about the shards. */
  readonly isPublic: boolean;
}

export interface Refusal {
  readonly code: 'unauthorized' | 'forbidden-host' | 'forbidden-origin';
  readonly status: 401 | 403;
  readonly message: string;
}

/** Null if the request is admitted. @param token null: none is required, which is allowed on loopback only */
export function refusalOf({ method, headers, isPublic }: IncomingRequest, token: string | null): Refusal | null {
  if (method !== 'GET' && method !== 'HEAD' && isForeign(headers)) {
    return {
      code: 'forbidden-origin',
      status: 403,
      message: 'this came from a web page of another origin: use shadow-compare, or send no Origin header',
    };
  }
  if (token === null && !namesLoopback(headers.host)) {
    return {
      code: 'forbidden-host',
      status: 403,
      message: 'without a token the Host header must name loopback: use http://127.0.0.1, or set admin.token',
    };
  }
  if (token === null || isPublic) return null;
  const [, given = ''] = /^Bearer (.+)$/i.exec(headers.authorization ?? '') ?? [];
  if (equal(given, token)) return null;
  const message =
    given === ''
      ? 'send the plan’s admin token as "Authorization: Bearer …"'
      : 'the token is not the plan’s admin token';
  return { code: 'unauthorized', status: 401, message };
}

/** Browsers say where a request comes from, and pages cannot change that. Other programs do not say. */
function isForeign({ origin, host, 'sec-fetch-site': site }: IncomingHttpHeaders): boolean {
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  return origin !== undefined && hostOf(origin) !== host?.toLowerCase();
}

function hostOf(origin: string): string | null {
  try {
    return new URL(origin).host;
  } catch {
    return null;
  }
}

function namesLoopback(host: string | undefined): boolean {
  try {
    return host !== undefined && isLoopback(parseAddress(host, 80).host);
  } catch {
    return false;
  }
}

/**
 * Takes the same time for any two texts. Hashes are compared, so that the time does not depend on the length either.
 */
const equal = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
