/** The pages on what waits for a person: loaded together, when the first of them is opened. */
export { default as Approvals } from './pages/approvals/page.tsx'
export { default as Costs } from './pages/costs/page.tsx'
export { default as DeadLetters } from './pages/dead-letters/page.tsx'
export { default as Incidents } from './pages/incidents/page.tsx'
export { default as Keys } from './pages/keys/page.tsx'
export { listPage } from './ui/list-page.tsx'
export { default as Market } from './pages/market/page.tsx'
