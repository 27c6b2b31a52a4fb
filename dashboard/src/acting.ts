/** The pages on what was done and why: loaded together, when the first of them is opened. */
export { default as Trace } from './pages/trace/page.tsx'
export { default as Traces } from './pages/traces/page.tsx'
