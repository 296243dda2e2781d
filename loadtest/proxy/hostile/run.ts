/** `npm run soak -- --hostile`: runs every attack for a while. */
import type { Rig } from '../../rig/rig.js';
import { runBattery } from './battery.js';
import { ATTACKS } from './attacks.js';
import { asLine, failuresOf, type HostileReport } from './report.js';
import { neededRss, type Tolerance } from './verdict.js';

export interface HostileOptions {
  /** Seconds of each attack. */
  readonly secondsEach: number;
  /** Names of attacks. */
  readonly attacks: readonly string[];
  /** Whether Redis itself is attacked, for comparison with the proxy. */
  readonly direct: boolean;
  readonly proxyCommand: string;
}

/** The plan's defaults. */
const TOTAL_CLIENT_BYTES = 256 << 20;
export const QUEUE_BYTES = 64 << 20;

export async function runHostile(
  rig: Rig,
  { secondsEach, attacks, direct, proxyCommand }: HostileOptions,
): Promise<HostileReport> {
  const tolerance: Tolerance = {
    factor: 5,
    floorMs: 20,
    leeway: 1,
    stallMs: 10_000,
    maxRss: direct ? null : neededRss(TOTAL_CLIENT_BYTES, QUEUE_BYTES),
  };
  const findings = await runBattery(rig, {
    attacks: ATTACKS.filter(({ name }) => attacks.includes(name)),
    seconds: secondsEach,
    tolerance,
    proxyCommand: direct ? null : proxyCommand,
    totalClientBytes: TOTAL_CLIENT_BYTES,
    calmMs: 1_000,
    retries: 1,
    report: (finding) => void process.stderr.write(`${asLine(finding)}\n`),
  });
  return {
    server: direct ? 'redis' : 'shadow-proxy',
    secondsEach,
    tolerance,
    findings,
    failures: failuresOf(findings, tolerance),
  };
}
