/** The pages on what happens: they are loaded together, when the first of them is opened. */
export { default as Scope } from './pages/scope/page.tsx'
export { default as Scopes } from './pages/scopes/page.tsx'
export { default as Trace } from './pages/trace/page.tsx'
export { default as Traces } from './pages/traces/page.tsx'
