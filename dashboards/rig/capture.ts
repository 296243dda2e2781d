/**
 * `npm run dashboards:metrics`: writes `dashboards/rig/exporters.json`, the metrics that the exporters of this machine
 * give for a real Redis, a real KeyDB and a host. The dashboards may name these, and no others.
 */
import { writeFileSync } from 'node:fs';
import { EXPORTERS_FILE, namesOf } from './exporters.js';
import { missing, startStack } from './stack.js';

const lacks = await missing();
if (lacks.length > 0) {
  process.stderr.write(`The list needs:\n${lacks.map((each) => `  ${each}\n`).join('')}`);
  process.exitCode = 2;
} else {
  const stack = await startStack();
  try {
    writeFileSync(EXPORTERS_FILE, `${JSON.stringify(await namesOf(stack), null, 2)}\n`);
    process.stdout.write('dashboards/rig/exporters.json\n');
  } finally {
    await stack.rig.close();
  }
}
