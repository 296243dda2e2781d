/** Faults that no simulated run can notice: those of rooms that are no part of it, and those that say why. */
import type { Fault } from '../fault.js';

/** Parts of paths below `shadow-proxy/src`, with the reason. */
const OUTSIDE: Readonly<Record<string, string>> = {
  'admin/': 'no HTTP',
  'notify/': 'no HTTP, and no receivers',
  'otel/': 'no collector',
  'telemetry/': 'figures for people, compared by nothing',
  'regional/': 'a library of clients, not part of the proxy',
  'guard/': 'several targets',
};

/** Why no run can notice the fault; null where one might. */
export function outsideOf({ file, unseen }: Pick<Fault, 'file' | 'unseen'>): string | null {
  if (unseen !== undefined) return unseen;
  const found = Object.keys(OUTSIDE).find((part) => file.includes(`shadow-proxy/src/${part}`));
  return found === undefined ? null : OUTSIDE[found];
}
