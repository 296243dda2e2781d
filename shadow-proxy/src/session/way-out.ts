/**
 * The ways out of a command. An answer, a refusal, a lost server, a change of stage, CLIENT UNBLOCK, a disconnect:
 * however a command ends, nothing of it is left for the next command of its client, nor for other clients.
 */
import type { CommandContext } from './context.js';

type Ending = Pick<CommandContext, 'client' | 'clients' | 'lanes'>;

/** Ends what the command at hand has begun: it is over. */
export function endCommand(context: Ending): void {
  const { client, clients, lanes } = context;
  const { subscribers } = clients;
  lanes.leaveQueue();
  client.blocked?.abandon();
  if (subscribers.changing) subscribers.ended(context);
}

/** Ends what the client has begun: it has left. */
export function endClient(context: Ending): void {
  endCommand(context);
  context.client.endTransaction();
}

/**
 * The command at hand was refused before it was queued or run. As in Redis, EXEC ends the transaction all the same, and
 * any other command makes EXEC refuse.
 */
export function refuseInTransaction({ client, clients, parser }: CommandContext): void {
  if (client.transaction === null) return;
  const { frame, argStart, argEnd, argc } = parser;
  if (clients.sequencer.table.find(frame, argStart, argEnd, argc)?.name === 'exec') client.endTransaction();
  else client.transaction.spoil();
}
