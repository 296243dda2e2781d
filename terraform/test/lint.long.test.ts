/**
 * What other people's rules say: tflint with all rules of its Terraform ruleset, checkov with the exceptions of
 * .checkov.yaml.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { homedir } from 'node:os';
import { TERRAFORM, terraformFiles } from './files.js';
import { onPath, pythonWith, run, type Program } from './program.js';

const TFLINT = 'github.com/terraform-linters/tflint@v0.64.0';
const CHECKOV = 'checkov==3.3.30';

test('tflint finds nothing', async (t) => {
  const tflint = await findTflint();
  if (tflint === null) return t.skip('no tflint, and no Go to install it with');
  const { code, output } = await run(
    tflint,
    ['--recursive', '--no-color', `--config=${join(TERRAFORM, '.tflint.hcl')}`],
    { cwd: TERRAFORM },
  );
  assert.equal(code, 0, output);
});

// checkov is shown one of them: .checkov.yaml.
test('an example calls environments/aws, and has no resource and no access key of its own', () => {
  const examples = terraformFiles('.tf').filter((file) => relative(TERRAFORM, file).startsWith('examples'));
  const text = examples.map((file) => readFileSync(file, 'utf8')).join('\n');
  assert.doesNotMatch(text, /^(resource|data|ephemeral)\b|\b(access|secret)_key *=/m);
  const modules = text.match(/^module /gm)!;
  const sources = [...text.matchAll(/^module .*\n +source += "(.*)"/gm)].map(([, source]) => source);
  assert.deepEqual(
    sources,
    modules.map(() => '../../environments/aws'),
  );
});

test('checkov finds nothing but the exceptions, each of which has its reason', async (t) => {
  const python = onPath('checkov') === null ? await pythonWith(CHECKOV) : null;
  const checkov: Program | null =
    onPath('checkov') !== null ? ['checkov'] : python && [...python, '-m', 'checkov.main'];
  if (checkov === null) return t.skip('no checkov, and no Python to install it with');
  const { code, output } = await run(checkov, [
    '--directory',
    TERRAFORM,
    '--config-file',
    join(TERRAFORM, '.checkov.yaml'),
  ]);
  assert.equal(code, 0, output);
});

async function findTflint(): Promise<Program | null> {
  const there = onPath('tflint');
  if (there !== null) return [there];
  if (onPath('go') === null) return null;
  const { code } = await run(['go'], ['install', TFLINT]);
  const { output } = await run(['go'], ['env', 'GOPATH']);
  return code === 0 ? [join(output.trim() || join(homedir(), 'go'), 'bin', 'tflint')] : null;
}
