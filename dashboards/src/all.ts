/** The dashboards, and the files that they are kept in. */
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { activeActive } from './active-active.js';
import { cutover } from './cutover.js';
import { hosts } from './hosts.js';
import { overview } from './overview.js';
import { servers } from './servers.js';
import { shadowProxy } from './shadow-proxy.js';

export const DASHBOARDS: readonly Dashboard[] = [overview, servers, shadowProxy, cutover, activeActive, hosts];

/** `dashboards/grafana/`, from the compiled file. */
export const GRAFANA = new URL('../../../dashboards/grafana/', import.meta.url);

/** The name of a dashboard's file. */
export const fileOf = (uid: string): string => `${uid.replace('redis-to-keydb-', '')}.json`;

/** What `dashboards/grafana/` holds: text by file name. */
export const dashboardFiles = (): ReadonlyMap<string, string> =>
  new Map(DASHBOARDS.map((dashboard) => [fileOf(dashboard.uid!), `${JSON.stringify(dashboard, null, 2)}\n`]));
