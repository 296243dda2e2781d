/** What the status page and the report look like beyond `html/style.ts`. */
export const VIEW_STYLE = `
.top { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: baseline; justify-content: space-between; }
.banner { border-radius: .4rem; padding: .5rem .8rem; font-weight: 600; margin: .5rem 0; }
.attention, .gates, .history { list-style: none; margin: .5rem 0; padding: 0; }
.attention li, .gates li { display: grid; grid-template-columns: 5.5em 1fr; gap: .1rem .6rem; padding: .25rem 0; align-items: start; }
.gates li { grid-template-columns: 5.5em 7.5em 1fr; border-bottom: 1px solid var(--line); }
.gates li:last-child { border-bottom: 0; }
.history li { padding: .2rem 0; }
.history time { color: var(--quiet); font-variant-numeric: tabular-nums; margin-right: .5rem; }
.workloads { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: .75rem; margin: .75rem 0; align-items: start; }
.workload { margin: 0; min-width: 0; }
.workload h3 { margin: 0 0 .4rem; }
.workload h3 .note { font-weight: normal; margin-left: .3rem; }
.track { display: flex; list-style: none; margin: .25rem 0; padding: 0; font-size: .82rem; border-radius: .3rem; overflow: hidden; border: 1px solid var(--line); }
.track li { flex: 1 1 auto; text-align: center; padding: .15rem .3rem; color: var(--quiet); background: var(--paper); white-space: nowrap; }
.track li + li { border-left: 1px solid var(--line); }
.track li[aria-current] { background: var(--s1); color: var(--paper); font-weight: 600; }
.figures { display: flex; flex-wrap: wrap; gap: .3rem 1.3rem; margin: .6rem 0; }
.figures dt { color: var(--quiet); font-size: .8rem; }
.figures dd { margin: 0; font-weight: 600; font-variant-numeric: tabular-nums; }
.figures .bad dd { color: var(--no); }
progress { width: 100%; height: .5rem; accent-color: var(--s1); display: block; }
summary { cursor: pointer; color: var(--quiet); margin-top: .4rem; }
.servers th { width: 5em; }
form.token { max-width: 28rem; }
input, button { font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--line); border-radius: .3rem; padding: .35rem .6rem; }
input { width: 100%; margin: .3rem 0 .6rem; }
.stale { opacity: .55; }
@media (max-width: 40rem) {
  .gates li { grid-template-columns: 5.5em 1fr; }
  .gates li > :last-child { grid-column: 1 / -1; }
  .servers tr { display: block; border-bottom: 1px solid var(--line); padding: .35rem 0; }
  .servers th, .servers td { display: block; border: 0; padding: .05rem 0; }
  .track li { font-size: .72rem; padding: .15rem .1rem; }
}
`;
