/** `npm run dashboards`: writes `dashboards/grafana/*.json` and `dashboards/datadog/*`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dashboardFiles, GRAFANA } from './all.js';
import { DATADOG, datadogFiles } from './datadog/all.js';

mkdirSync(DATADOG, { recursive: true });
for (const [folder, files] of [
  [GRAFANA, dashboardFiles()],
  [DATADOG, datadogFiles()],
] as const)
  for (const [name, text] of files) {
    writeFileSync(new URL(name, folder), text);
    process.stdout.write(`${new URL(name, folder).pathname.replace(/.*\/(?=dashboards\/)/, '')}\n`);
  }
