/** Sends one notice to one receiver, and describes the answer in words, without secrets. */
import { unixMs } from '../io/clock.js';
import { request } from '../io/http.js';
import { timeoutSignal } from '../io/timers.js';
import type { ReceiverPlan } from '../plan/plan.js';
import { printable } from '../text/printable.js';
import type { Notice } from './notice.js';
import { requestOf } from './receivers.js';

export interface Answer {
  /** `accepted`; `later`: the receiver may accept it later; `refused`: it will never accept it. */
  readonly outcome: 'accepted' | 'later' | 'refused';
  /** The status and the beginning of the answer, or why the receiver cannot be reached. */
  readonly text: string;
  /** The pause that the receiver requests, in ms; null if it requests none. */
  readonly afterMs: number | null;
}

const TIMEOUT_MS = 10_000;
const MAX_TEXT = 200;
/** Too many requests, and statuses of HTTP proxies. */
const LATER = [408, 425, 429];

/** Does not throw. */
export async function send(notice: Notice, receiver: ReceiverPlan): Promise<Answer> {
  try {
    const { url, headers, body } = requestOf(notice, receiver, unixMs());
    const response = await request(url, {
      method: 'POST',
      headers,
      body,
      redirect: 'manual',
      signal: timeoutSignal(TIMEOUT_MS),
    });
    const said = printable((await beginningOf(response)).replaceAll(/\s+/g, ' ').trim());
    const later = response.status >= 500 || LATER.includes(response.status);
    return {
      outcome: response.ok ? 'accepted' : later ? 'later' : 'refused',
      text: hidden(`${response.status} ${said}`.trim().slice(0, MAX_TEXT), receiver),
      afterMs: secondsOf(response.headers.get('retry-after')),
    };
  } catch (error) {
    const { message, cause } = error as Error;
    return {
      outcome: 'later',
      text: hidden(printable((cause as Error | undefined)?.message || message), receiver),
      afterMs: null,
    };
  }
}

/** Reads only the beginning: an answer can be of any size. */
async function beginningOf({ body }: Response): Promise<string> {
  if (body === null) return '';
  const reader = body.getReader();
  const { value } = (await reader.read()) as { readonly value?: Uint8Array };
  await reader.cancel();
  return Buffer.from(value ?? []).toString('utf8');
}

/** The receiver's origin, without the rest of its URL, which may be a secret. */
export const addressOf = ({ url }: ReceiverPlan): string => new URL(url).origin;

const secondsOf = (text: string | null): number | null =>
  text !== null && /^\d+$/.test(text) ? Number(text) * 1000 : null;

/** Hides secrets: a receiver may repeat what it was sent. */
const hidden = (text: string, { url, secret }: ReceiverPlan): string =>
  [url, new URL(url).pathname.slice(1), secret ?? '']
    .filter(({ length }) => length > 3)
    .reduce((shown, each) => shown.replaceAll(each, '***'), text);
