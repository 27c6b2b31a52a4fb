/** The pages on what happens: they are loaded together, when the first of them is opened. */
export { default as Incidents } from './incidents/page.tsx'
export { default as Scope } from './scope/page.tsx'
export { default as Scopes } from './scopes/page.tsx'
export { default as Trace } from './trace/page.tsx'
export { default as Traces } from './traces/page.tsx'
