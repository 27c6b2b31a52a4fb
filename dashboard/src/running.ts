/** The pages on scopes: they are loaded together, when the first of them is opened. */
export { default as Scope } from './pages/scope/page.tsx'
export { default as Scopes } from './pages/scopes/page.tsx'
