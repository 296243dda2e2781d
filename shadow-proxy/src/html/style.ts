/** The style of every document: quiet, dense, and understandable without telling red from green. */
/** Shows the rows of a table as cards: each cell beside the name of its column. */
const asCards = (table: string): string => `
  ${table} thead { display: none; }
  ${table} tr { display: block; border-bottom: 1px solid var(--line); padding: .35rem 0; }
  ${table} td { display: grid; grid-template-columns: 8em minmax(0, 1fr); border: 0; padding: .05rem 0; }
  ${table} td::before { content: attr(data-name); color: var(--quiet); font-size: .87rem; }`;

export const STYLE = `
:root {
  color-scheme: light dark;
  --paper: #fff; --panel: #f6f7f9; --ink: #1b1f24; --quiet: #5b6470; --line: #d9dde3; --link: #0b5cad;
  --yes: #1a7f37; --yes-back: #dff3e4; --no: #b3261e; --no-back: #fde4e1; --unknown: #8a5a00; --unknown-back: #fdf0d5;
  --s1: #0b6bcb; --s2: #d9730d; --s3: #6f42c1; --s4: #1a7f37; --s5: #b3261e; --s6: #5b6470;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #12151a; --panel: #1b2027; --ink: #e4e8ee; --quiet: #9aa5b3; --line: #313945; --link: #6cb0ff;
    --yes: #63d08a; --yes-back: #16361f; --no: #ff8d83; --no-back: #4a1b18; --unknown: #f0be5c; --unknown-back: #3f2f0c;
    --s1: #5aaefb; --s2: #ffa657; --s3: #b794f6; --s4: #63d08a; --s5: #ff8d83; --s6: #9aa5b3;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 0 1rem 3rem; background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.35rem; margin: 1rem 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .4rem; }
p { margin: .4rem 0; }
a { color: var(--link); }
code { font: .92em/1.4 ui-monospace, "DejaVu Sans Mono", monospace; background: var(--panel); padding: .1em .3em; border-radius: .25em; overflow-wrap: anywhere; }
.hash { white-space: nowrap; }
.note, .quiet { color: var(--quiet); }
.note { font-size: .87rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--quiet); font-weight: 500; font-size: .87rem; white-space: nowrap; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem; margin: .75rem 0; }
.badge { display: inline-block; min-width: 3.2em; text-align: center; font-size: .8rem; font-weight: 600; border-radius: .3rem; padding: .05rem .4rem; white-space: nowrap; }
.yes { color: var(--yes); background: var(--yes-back); }
.no { color: var(--no); background: var(--no-back); }
.unknown { color: var(--unknown); background: var(--unknown-back); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: .5rem 1.5rem; }
.plot { margin: .5rem 0; min-width: 0; }
.plot figcaption { font-weight: 600; }
plot-view { display: block; min-height: 200px; }
plot-view.empty { position: relative; }
plot-view.empty::after { content: "nothing measured yet"; position: absolute; inset: 70px 0 auto 60px; text-align: center; color: var(--quiet); }
.u-legend { font-size: .8rem; font-variant-numeric: tabular-nums; text-align: left; color: var(--ink); }
.u-legend th, .u-legend td { border: 0; padding: 0 .2rem; }
.u-legend th { font-weight: normal; font-size: inherit; }
.plot figcaption .note { font-weight: normal; }
.u-select { background: color-mix(in srgb, var(--s1) 15%, transparent); }
@media (max-width: 40rem) {
  body { padding: 0 .7rem 2rem; }
  th, td { padding-right: .5rem; }
${asCards('.cards')}
}
@media (max-width: 64rem) {
${asCards('.cards.wide')}
}
@media print { body { max-width: none; } .panel, .plot, tr { break-inside: avoid; } }
`;
