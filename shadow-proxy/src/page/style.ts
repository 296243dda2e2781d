/** Styles of the status page and the report, in addition to `html/style.ts`. */
export const VIEW_STYLE = `
.top { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: baseline; justify-content: space-between; }
.banner { border-radius: .4rem; padding: .5rem .8rem; font-weight: 600; margin: .5rem 0; }
.banner p { margin: 0; }
.banner .next-step { font-weight: 400; margin-top: .35rem; }
.next-step { display: flex; flex-wrap: wrap; gap: .25rem .8rem; align-items: baseline; margin-top: .15rem; }
.command { display: inline-block; max-width: 100%; padding: .15em .5em; user-select: all; color: var(--ink); overflow-wrap: normal; }
.panel .command { background: var(--paper); }
.command span { display: inline-block; max-width: 100%; overflow-wrap: anywhere; }
.term { text-decoration: underline dotted var(--quiet); text-underline-offset: .2em; cursor: help; }
.term:focus { outline: 2px solid var(--link); outline-offset: 2px; }
.term:focus::after { content: attr(title); content: attr(title) / ""; position: fixed; z-index: 2; left: 50%; bottom: .75rem; transform: translateX(-50%); width: max-content; max-width: calc(100vw - 1.5rem); white-space: normal; text-align: left; background: var(--ink); color: var(--paper); font: 14px/1.4 system-ui, sans-serif; border-radius: .4rem; padding: .5rem .8rem; }
.glossary { margin-top: 2rem; }
.glossary div { display: grid; grid-template-columns: 9rem minmax(0, 1fr); gap: .75rem; padding: .15rem 0; }
.glossary dt { font-weight: 600; }
.glossary dd { margin: 0; }
.jobs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: .5rem 2rem; align-items: start; }
.jobs p { margin-top: 0; }
.attention, .gates, .history { list-style: none; margin: .5rem 0; padding: 0; }
.attention li, .gates li { display: grid; grid-template-columns: 6.5em minmax(0, 1fr); gap: .1rem .6rem; padding: .25rem 0; align-items: start; }
.gates li { grid-template-columns: 6.5em 7.5em minmax(0, 1fr); border-bottom: 1px solid var(--line); }
.gates .gate-next { grid-column: 1 / -1; margin: .1rem 0 .25rem; }
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
form.controls { display: flex; flex-wrap: wrap; gap: .3rem .9rem; align-items: baseline; }
input, button { font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--line); border-radius: .3rem; padding: .35rem .6rem; }
input { width: 100%; margin: .3rem 0 .6rem; }
form.controls input { width: 6em; margin: 0; }
.stale { opacity: .55; }
@media (max-width: 40rem) {
  .gates li { grid-template-columns: 6.5em minmax(0, 1fr); }
  .gates .gate-evidence { grid-column: 1 / -1; }
  .attention li { grid-template-columns: minmax(0, 1fr); justify-items: start; }
  .servers tr { display: block; border-bottom: 1px solid var(--line); padding: .35rem 0; }
  .servers th, .servers td { display: block; border: 0; padding: .05rem 0; }
  .track li { font-size: .72rem; padding: .15rem .1rem; }
}
`;
