/** MULTI, EXEC, DISCARD, WATCH. */
import { arrayOf, error, nilArray, OK, Refusal } from './reply.js';
import type { Run } from './state.js';

const CHANGED =
  'NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: ';
const REASONS = {
  command: 'no permission to execute the command or subcommand',
  keys: 'no permission to touch the specified keys',
};

const exec: Run = (client) => {
  const { multi, server } = client;
  if (multi === null) throw new Refusal('ERR EXEC without MULTI');
  const stale = client.dirty || client.watchesExpired;
  const { spoilt } = client;
  client.endTransaction();
  if (spoilt) throw new Refusal('EXECABORT Transaction discarded because of previous errors.');
  if (stale) return nilArray(client.protocol);
  client.mayNotBlock = true;
  let reply = arrayOf(multi.length);
  for (const { command, args } of multi) {
    const lacks = server.lackingRight(client, command, args);
    reply += lacks === null ? server.call(client, args) : error(`${CHANGED}${REASONS[lacks]}`);
  }
  client.mayNotBlock = false;
  return reply;
};

export const TRANSACTION_COMMANDS: Readonly<Record<string, Run>> = {
  multi(client) {
    if (client.multi !== null) throw new Refusal('ERR MULTI calls can not be nested');
    client.multi = [];
    return OK;
  },
  exec,
  discard(client) {
    if (client.multi === null) throw new Refusal('ERR DISCARD without MULTI');
    client.endTransaction();
    return OK;
  },
  watch(client, args) {
    if (client.multi !== null) throw new Refusal('ERR WATCH inside MULTI is not allowed');
    // A client that will fail anyway watches nothing more.
    if (!client.dirty) for (let i = 1; i < args.length; i++) client.watch(args[i]);
    return OK;
  },
  unwatch(client) {
    client.unwatch();
    client.dirty = false;
    return OK;
  },
};
