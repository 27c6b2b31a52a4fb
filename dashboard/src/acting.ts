/** The pages on what was done and why: loaded together, when the first of them is opened. */
export { default as Decisions } from './pages/decisions/page.tsx'
export { default as Learning } from './pages/learning/page.tsx'
export { default as Trace } from './pages/trace/page.tsx'
export { default as Traces } from './pages/traces/page.tsx'
