/** Commands of clients that no server may be sent: they would stop it, or change it behind the proxy's back. */
import { FORBIDDEN } from '../clients/kinds/keys.js';

const TEXTS = new Set(FORBIDDEN.map((args) => args.join(' ')));
const NAMES = new Set(FORBIDDEN.map(([name]) => name));

export const isForbidden = (args: readonly string[]): boolean => NAMES.has(args[0]) && TEXTS.has(args.join(' '));
