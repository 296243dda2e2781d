/**
 * Drives one server from a process of its own: `node drive-once.js PORT SEED MS`, where a reply may take MS. Exits with
 * code 0 if nothing was wrong, and otherwise with code 1, also where the fault made a client library throw out of its
 * socket's handler.
 */
import { drive } from './driver.js';

const [port, seed, replyMs] = process.argv.slice(2).map(Number);
const report = await drive({ port, seed, durationMs: 2500, replyMs });
for (const violation of report.violations) process.stderr.write(`${violation}\n`);
process.exit(report.violations.length > 0 ? 1 : 0);
