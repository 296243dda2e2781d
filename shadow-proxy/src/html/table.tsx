/** A table that a phone shows as cards: one a row, each cell behind the name of its column. */
import type { ComponentChildren, JSX } from 'preact';

export const Table = ({
  head,
  rows,
}: {
  head: readonly string[];
  rows: readonly (readonly ComponentChildren[])[];
}): JSX.Element => (
  <table class="cards">
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
