/**
 * The first thing that a program loads: says in one sentence that this Node is too old, and ends. In the syntax of old
 * releases, for a newer one would be a syntax error there.
 */
import { readFileSync } from 'fs';

const { engines } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
const OLDEST = /\d+\.\d+/.exec(engines.node)[0];
const RECOMMENDED = 24;

const isOlder = (version) => {
  const [major, minor] = version.split('.').map(Number);
  const [leastMajor, leastMinor] = OLDEST.split('.').map(Number);
  return major < leastMajor || (major === leastMajor && minor < leastMinor);
};

if (isOlder(process.versions.node)) {
  process.stderr.write(
    `Node ${process.versions.node} is too old: Node ${OLDEST} or newer is needed, Node ${RECOMMENDED} (LTS) is recommended. Nothing was installed.\n`,
  );
  process.exit(2);
}

/** Said where a clone is made ready; null where there is nothing to say. */
export const advice = process.versions.node.startsWith('20.')
  ? `Node 20 ended in April 2026: this is ${process.versions.node}, it works, and Node ${RECOMMENDED} (LTS) is recommended.`
  : null;
