/** Light and dark, wide and narrow. Colours keep to WCAG's contrast of 4.5 in both. */
export const style = `
:root { color-scheme: light dark; --ink: light-dark(#1b1f24, #e4e7eb); --dim: light-dark(#57606a, #9aa4b0); --ground: light-dark(#fff, #14171b);
  --panel: light-dark(#f4f6f8, #1d2127); --line: light-dark(#d9dee4, #333a43); --link: light-dark(#0b57b0, #7db5ff) }
* { box-sizing: border-box }
html { scroll-padding-top: 1rem }
body { margin: 0; display: grid; grid-template-columns: 17rem minmax(0, 1fr); background: var(--ground); color: var(--ink); font: 16px/1.55 system-ui, sans-serif }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.25rem 1rem 3rem; border-right: 1px solid var(--line); font-size: .875rem }
nav h2 { margin: 1.25rem 0 .25rem; font-size: .875rem }
nav ul { margin: 0; padding: 0; list-style: none }
nav li { margin: .2rem 0 }
main { max-width: 60rem; padding: 1.25rem 2rem 6rem }
a { color: var(--link); text-decoration: none }
a:hover, a:focus-visible { text-decoration: underline }
h1 { margin: 0 0 1rem; font-size: 2rem }
section > h2 { margin: 3rem 0 .5rem; padding-bottom: .25rem; border-bottom: 2px solid var(--line); font-size: 1.5rem }
article { margin: 2rem 0 3rem }
h3 { margin: 0; font-size: 1.15rem }
h3 a { color: inherit }
h4 { margin: 1.25rem 0 .35rem; color: var(--dim); font-size: .8rem; letter-spacing: .05em; text-transform: uppercase }
p { margin: .5rem 0 }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .875em }
pre { margin: .35rem 0; padding: .75rem 1rem; overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; background: var(--panel); line-height: 1.5 }
pre i { color: var(--dim); font-style: normal }
.route { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem; margin: .35rem 0 .75rem }
.route code { overflow-wrap: anywhere }
.method { padding: .05rem .5rem; border-radius: 4px; color: #fff; font: 600 .8rem/1.6 ui-monospace, monospace }
.get { background: #0b63ad } .post { background: #1a7037 } .put { background: #8a5200 } .patch { background: #6d44ab } .delete { background: #b3261e }
.role { padding: .05rem .5rem; border: 1px solid var(--line); border-radius: 4px; color: var(--dim); font-size: .8rem }
.type { color: var(--dim); font-size: .8rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: .9rem }
th, td { padding: .3rem 1rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top }
th, .wide td:nth-child(2):has(+ td + td) { white-space: nowrap }
th { font-weight: 600 }
@media (max-width: 50rem) { body { display: block } nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line) } main { padding: 1.25rem 1rem 4rem } }
@media print { body { display: block } nav { display: none } }
`
