/** The settings part of the gate `servers`: an operator must accept differing settings that clients can notice. */
import type { AcceptableSetting } from '../plan/plan.js';
import {
  describeDifference,
  describeUnread,
  remedyOf,
  type SettingDifference,
  type SettingsComparison,
} from '../upstream/settings.js';
import { says, unknown, type GateAnswer } from './gate-answer.js';

/**
 * Null if the settings do not close the gate.
 * @param accepted `gates.acceptSettings`
 */
export function judgeSettings(
  { visible, unread, refusals }: SettingsComparison,
  accepted: readonly AcceptableSetting[],
): GateAnswer | null {
  const differing = visible.filter(({ name }) => !accepted.includes(name));
  if (differing.length > 0) {
    const each = differing.map((one) => `${describeDifference(one)}: ${remedyOf(one)}`);
    return says(
      false,
      `settings that clients can see differ, set them on the target: ${each.join('; ')}; or list in gates.acceptSettings which may differ`,
    );
  }
  const open = accepted.includes('unreadable') ? [] : unread.filter(({ name }) => !accepted.includes(name));
  if (open.length > 0)
    return unknown(
      `${describeUnread(open, refusals)}; allow CONFIG GET to the proxy's user, or compare them yourself and list unreadable in gates.acceptSettings`,
    );
  return null;
}

/** The text about settings that do not close the gate. */
export function settingsShown({ visible, tuning, unread, refusals }: SettingsComparison): string[] {
  const listed = (differences: readonly SettingDifference[]): string => differences.map(describeDifference).join(', ');
  return [
    ...(visible.length === 0 ? [] : [`settings that differ and are accepted: ${listed(visible)}`]),
    ...(unread.length === 0 ? [] : [`accepted without a comparison: ${describeUnread(unread, refusals)}`]),
    ...(tuning.length === 0 ? [] : [`settings that differ without effect on replies: ${listed(tuning)}`]),
  ];
}
