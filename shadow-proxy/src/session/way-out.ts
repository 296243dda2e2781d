/**
 * The ends of a command: an answer, a refusal, a lost server, a stage change, CLIENT UNBLOCK, a disconnect. However a
 * command ends, nothing of it is left for its client's next command, nor for other clients.
 */
import type { CommandContext } from './context.js';

type Ending = Pick<CommandContext, 'client' | 'clients' | 'lanes'>;

/** Ends everything that the command at hand has begun. */
export function endCommand(context: Ending): void {
  const { client, clients, lanes } = context;
  const { subscribers } = clients;
  lanes.leaveQueue();
  client.blocked?.abandon();
  if (subscribers.changing) subscribers.ended(context);
}

/** Ends everything that the client has begun: it has disconnected. */
export function endClient(context: Ending): void {
  endCommand(context);
  context.client.endTransaction();
}

/**
 * The command at hand was refused before it was queued or run. As in Redis, a refused EXEC still ends the transaction,
 * and any other refused command makes EXEC answer EXECABORT.
 */
export function refuseInTransaction({ client, clients, parser }: CommandContext): void {
  if (client.transaction === null) return;
  const { frame, argStart, argEnd, argc } = parser;
  if (clients.sequencer.table.find(frame, argStart, argEnd, argc)?.name === 'exec') client.endTransaction();
  else client.transaction.spoil();
}
