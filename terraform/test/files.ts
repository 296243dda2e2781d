/** Where the Terraform part is, seen from the build. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const TERRAFORM = fileURLToPath(new URL('../../../terraform', import.meta.url));
export const SCHEMA_FILE = join(TERRAFORM, 'schema', 'schema.json');
export const FORCE_NEW_FILE = join(TERRAFORM, 'schema', 'force-new.json');
export const PROTO_FILE = join(TERRAFORM, 'schema', 'tfplugin5.proto');

/** Files of the Terraform part with that ending, without what Terraform itself keeps there. */
export const terraformFiles = (ending: string): string[] =>
  filesBelow(TERRAFORM).filter((file) => file.endsWith(ending));

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === '.terraform') return [];
    const path = join(directory, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}
