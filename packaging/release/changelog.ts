/** CHANGELOG.md, in the form of Keep a Changelog. */

export interface Change {
  readonly kind: 'major' | 'minor' | 'patch';
  /** Markdown. */
  readonly text: string;
}

const TITLES = { major: 'Changed', minor: 'Added', patch: 'Fixed' } as const;
const UNRELEASED = /^## Unreleased\n/;

/**
 * The changelog with a section for the version: what stood under Unreleased, and the changes, each under the title of
 * its kind.
 * @param date as 2026-01-31
 */
export function released(changelog: string, version: string, date: string, changes: readonly Change[]): string {
  const [intro, ...sections] = changelog.split(/^(?=## )/m);
  const earlier = sections.filter((section) => !UNRELEASED.test(section));
  const unreleased = sections.find((section) => UNRELEASED.test(section))?.replace(UNRELEASED, '') ?? '';
  const parts = new Map(
    unreleased
      .split(/^### /m)
      .slice(1)
      .map((part) => part.split(/\n(.*)/s, 2) as [string, string])
      .map(([title, lines]) => [title, lines.trim()]),
  );
  for (const { kind, text } of changes) {
    const item = `- ${text.trim().replaceAll('\n', '\n  ')}`;
    const before = parts.get(TITLES[kind]);
    parts.set(TITLES[kind], before === undefined ? item : `${before}\n${item}`);
  }
  const body = [...parts].map(([title, lines]) => `### ${title}\n\n${lines}\n\n`).join('');
  return `${intro}## ${version} (${date})\n\n${body}${earlier.join('')}`.trimEnd() + '\n';
}
