/** A table that a phone shows as cards: one for each row, each cell after the name of its column. */
import type { ComponentChildren, JSX } from 'preact';

/** @param wide whether a small window shows it as cards, too, because its cells cannot wrap */
export const Table = ({
  head,
  rows,
  wide = false,
}: {
  head: readonly string[];
  rows: readonly (readonly ComponentChildren[])[];
  wide?: boolean;
}): JSX.Element => (
  <table class={wide ? 'cards wide' : 'cards'}>
    <thead>
      <tr>
        {head.map((name) => (
          <th>{name}</th>
        ))}
      </tr>
    </thead>
    <tbody>
      {rows.map((cells) => (
        <tr>
          {cells.map((cell, at) => (
            <td data-name={head[at]}>
              <span>{cell}</span>
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
);
