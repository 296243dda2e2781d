/** `npm run dashboards`: writes `dashboards/grafana/*.json`. */
import { writeFileSync } from 'node:fs';
import { dashboardFiles, GRAFANA } from './all.js';

for (const [name, text] of dashboardFiles()) {
  writeFileSync(new URL(name, GRAFANA), text);
  process.stdout.write(`dashboards/grafana/${name}\n`);
}
