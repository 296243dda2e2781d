/** Writes on keys `u…`, whose only writer is another region, are refused; everything else about them is not. */
import { isError, type Reply } from '../clients/replies.js';

const REFUSED = /^-ERR shadow-proxy: .*only writer/;

/** Why the reply is wrong; null where it is not. */
export function secondWriterProblem(args: readonly string[], reply: Reply): string | null {
  const [name, ...rest] = args;
  const written = name === 'COPY' ? [rest[1]] : name === 'GET' ? [] : rest;
  const mustRefuse = name === 'FLUSHDB' || written.some((key) => key?.startsWith('u'));
  const isRefused = isError(reply) && REFUSED.test(reply);
  return mustRefuse === isRefused ? null : `${args.join(' ')} got ${JSON.stringify(reply)}`;
}
