/**
 * Who may ask the admin HTTP. Two things are kept out apart from those without the token: other web pages of the
 * operator's browser that send a request in passing (their Origin is not ours), and pages that reach a proxy without a
 * token by a name of their own which they let resolve to 127.0.0.1 (their Host is not loopback's).
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback, parseAddress } from '../plan/endpoint.js';

export interface Asked {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** What everybody may have: files without anything in them. */
  readonly isPublic: boolean;
}

export interface Refusal {
  readonly code: 'unauthorized' | 'forbidden-host' | 'forbidden-origin';
  readonly status: 401 | 403;
  readonly message: string;
}

/** Null if it is answered. @param token null asks for none, which loopback alone may do */
export function refusalOf({ method, headers, isPublic }: Asked, token: string | null): Refusal | null {
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

/** Browsers say where a request comes from, and no page can make them say otherwise; other programs say nothing. */
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

/** In the same time for any two texts: hashes are compared, so that not even the length shows. */
const equal = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
