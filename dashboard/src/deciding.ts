/** The pages on what decides: loaded together, when the first of them is opened. */
export { default as Reflex } from './pages/reflex/page.tsx'
export { default as Reflexes } from './pages/reflexes/page.tsx'
export { default as Skill } from './pages/skill/page.tsx'
export { default as Skills } from './pages/skills/page.tsx'
