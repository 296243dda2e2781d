/** Who does not read does not fill the proxy's memory: what it keeps for one connection is bounded. */
import type { Process } from '../world/process.js';

/** Beside what the plan allows a client to leave unread: what is in flight for it, or for a server. */
const BESIDE = 2 << 20;

/** What is wrong; null where nothing is. @param maxUnreadBytes bytes that a client may leave unread */
export function heldProblem({ sockets }: Process, maxUnreadBytes: number): string | null {
  for (const socket of sockets)
    if (socket.writableLength > maxUnreadBytes + BESIDE)
      return `${socket.writableLength} bytes are kept for ${socket.remoteAddress}`;
  return null;
}
