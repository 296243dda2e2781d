/** The table of terraform/README.md that says what each change replaces. */
import type { Action, Change } from './environment.js';

export interface Row {
  readonly change: string;
  /** Or the reason why the plan is refused. */
  readonly result: readonly Change[] | string;
}

const BEGIN = '<!-- what a change replaces: made by test/changes.long.test.ts -->';
const END = '<!-- end of what a change replaces -->';

const HEAD = '| variable | replaces | creates | removes | changes in place |\n| --- | --- | --- | --- | --- |';

export const tableIn = (text: string): string => {
  const [, rest = ''] = text.split(`${BEGIN}\n\n`);
  return rest.split(`\n\n${END}`)[0];
};

export const tableOf = (rows: readonly Row[]): string => [HEAD, ...rows.map(lineOf)].join('\n');

function lineOf({ change, result }: Row): string {
  if (typeof result === 'string') return `| ${change} | **refused**: ${reasonOf(result)} | | | |`;
  const cells = (['replace', 'create', 'delete', 'update'] as const).map((action) => cellOf(result, action));
  return `| ${change} | ${cells.join(' | ')} |`.replaceAll('|  |', '| |').replaceAll('|  |', '| |');
}

function reasonOf(refusal: string): string {
  if (/were made as/.test(refusal)) return 'hosts have the other name';
  if (/would be deleted/.test(refusal)) return 'hosts and data would be deleted';
  return /would be replaced/.test(refusal) ? 'hosts would be replaced' : 'other variables must change, too';
}

function cellOf(changes: readonly Change[], action: Action): string {
  const words = new Set(changes.filter((change) => change.action === action).map(wordOf));
  const text = [...words].sort().join(', ');
  return action === 'replace' && text === '' ? 'nothing' : text;
}

const KINDS: Readonly<Record<string, string>> = {
  keydb: 'KeyDB',
  shadow_proxy: 'proxy',
  observability: 'monitoring',
  loadgen: 'load-test',
};

const WORDS: Readonly<Record<string, string>> = {
  aws_cloudwatch_metric_alarm: 'alarms',
  aws_iam_instance_profile: 'IAM',
  aws_iam_role: 'IAM',
  aws_iam_role_policy: 'IAM',
  aws_kms_alias: 'key alias',
  aws_kms_key: 'KMS key',
  aws_lb: 'load balancer',
  aws_lb_listener: 'listeners',
  aws_lb_target_group: 'target groups',
  aws_lb_target_group_attachment: 'targets',
  aws_placement_group: 'placement group',
  aws_route53_record: 'DNS records',
  aws_route53_zone: 'zone',
  aws_secretsmanager_secret: 'secrets',
  aws_secretsmanager_secret_version: 'passwords',
  aws_security_group: 'security groups',
  aws_sns_topic: 'topic',
  aws_sns_topic_subscription: 'subscriptions',
  aws_ssm_parameter: 'passwords',
  aws_vpc_security_group_egress_rule: 'rules',
  aws_vpc_security_group_ingress_rule: 'rules',
};

function wordOf({ address, type }: Change): string {
  const [, module] = /^module\.(\w+)/.exec(address) ?? [];
  if (type === 'aws_instance') return `${KINDS[module!]} hosts`;
  if (type === 'aws_ebs_volume') return `${KINDS[module!]} data volumes`;
  if (type === 'aws_volume_attachment') return 'attachments';
  if (type.startsWith('aws_s3_bucket')) return type === 'aws_s3_bucket' ? 'buckets' : 'bucket settings';
  return WORDS[type] ?? type;
}
