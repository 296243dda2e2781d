/**
 * What is wrong with a release of this commit. Versions agree, npm's page and the provenance have the repository, and
 * the image has a base that cannot change.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

interface Manifest {
  readonly version: string;
  readonly repository?: unknown;
}

export interface Release {
  readonly kit: Manifest;
  readonly counters: Manifest;
  readonly chart: { readonly version: string; readonly appVersion: string };
  readonly changelog: string;
  /** Names of the files in `.changeset` that no version has yet. */
  readonly changesets: readonly string[];
  /** Such as `v0.2.0`. */
  readonly tag: string;
  /** Of the image; empty where nothing sets it. */
  readonly base: string;
}

const DIGEST = /@sha256:[0-9a-f]{64}$/;

/** @param root of the repository */
export function readRelease(root: string, { TAG = '', BASE_IMAGE = '' }: NodeJS.ProcessEnv): Release {
  const read = (path: string): string => readFileSync(join(root, path), 'utf8');
  return {
    kit: JSON.parse(read('package.json')) as Manifest,
    counters: JSON.parse(read('counters/package.json')) as Manifest,
    chart: parse(read('charts/shadow-proxy/Chart.yaml')) as Release['chart'],
    changelog: read('CHANGELOG.md'),
    changesets: readdirSync(join(root, '.changeset')).filter((file) => file.endsWith('.md')),
    tag: TAG,
    base: BASE_IMAGE,
  };
}

/** Each says what to do; empty where the release can be made. */
export function problemsOf({ kit, counters, chart, changelog, changesets, tag, base }: Release): string[] {
  const { version } = kit;
  const manifests = { 'package.json': kit, 'counters/package.json': counters };
  const versions = {
    'counters/package.json': counters.version,
    'version in Chart.yaml': chart.version,
    'appVersion in Chart.yaml': chart.appVersion,
  };
  return [
    ...Object.entries(manifests)
      .filter(([, { repository }]) => repository === undefined)
      .map(
        ([file]) =>
          `${file} has no "repository": set it to the address of the repository. npm resolves the links of the README with it, and checks the provenance against it`,
      ),
    ...Object.entries(versions)
      .filter(([, other]) => other !== version)
      .map(([what, other]) => `${what} is ${other}, and package.json has ${version}: run npm run release:version`),
    ...(changesets.length > 0 ? [`.changeset has ${changesets.join(', ')}: run npm run release:version`] : []),
    ...(new RegExp(`^## ${version.replaceAll('.', '\\.')}( |$)`, 'm').test(changelog)
      ? []
      : [`CHANGELOG.md has no section ${version}: run npm run release:version`]),
    ...(tag === `v${version}`
      ? []
      : [`the tag is ${tag || 'missing'}, and package.json has ${version}: tag the commit v${version}`]),
    ...(DIGEST.test(base)
      ? []
      : [
          `BASE_IMAGE is ${base || 'not set'}: set this variable of the repository to the base image with the digest that you have checked, such as node:24-slim@sha256:…`,
        ]),
  ];
}
