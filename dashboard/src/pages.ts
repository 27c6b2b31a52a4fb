import type { ComponentType } from 'preact'
import Overview from './pages/overview/page.tsx'
import { later } from './ui/page.tsx'

const acting = () => import('./acting.ts')
const running = () => import('./running.ts')
const deciding = () => import('./deciding.ts')
const operating = () => import('./operating.ts')

/** The features that declare a list as a page. They stand in Settings, or in another group. */
const declared = Object.keys(import.meta.glob('./*/page.ts', { base: '../../src/features' })).map((file) => file.slice(2, -8))
const groupOf: Readonly<Record<string, Group>> = { alerts: 'Now' }

/** The groups of pages, in the order of the menu. */
export const groups = ['Now', 'Activity', 'Scopes', 'Decisions', 'Costs', 'Settings'] as const
type Group = (typeof groups)[number]
type PageEntry = readonly [path: string, component: ComponentType, group: Group, link?: string]

/** All pages, those with a link in its order. The first one comes with the shell, others later. */
export const pages: readonly PageEntry[] = [
  ['/', Overview, 'Now', 'Overview'],
  ['/approvals', later(operating, 'Approvals'), 'Now', 'Approvals'],
  ['/dead-letters', later(operating, 'DeadLetters'), 'Now', 'Dead letters'],
  ['/traces', later(acting, 'Traces'), 'Activity', 'Traces'],
  ['/traces/:id', later(acting, 'Trace'), 'Activity'],
  ['/incidents', later(operating, 'Incidents'), 'Activity', 'Blocks'],
  ['/scopes', later(running, 'Scopes'), 'Scopes', 'Scopes'],
  ['/scopes/:scope+', later(running, 'Scope'), 'Scopes'],
  ['/reflexes', later(deciding, 'Reflexes'), 'Decisions', 'Reflexes'],
  ['/reflexes/:id', later(deciding, 'Reflex'), 'Decisions'],
  ['/decisions', later(acting, 'Decisions'), 'Decisions', 'Decision models'],
  ['/skills', later(deciding, 'Skills'), 'Decisions', 'Skills'],
  ['/skills/:id', later(deciding, 'Skill'), 'Decisions'],
  ['/learning', later(acting, 'Learning'), 'Decisions', 'Learning'],
  ['/what-if', later(() => import('./pages/what-if/page.tsx'), 'default'), 'Decisions', 'What if'],
  ['/costs', later(operating, 'Costs'), 'Costs', 'Costs'],
  ['/keys', later(operating, 'Keys'), 'Settings', 'Keys'],
  ...declared.map((name): PageEntry => [
    `/${name}`,
    later(() => operating().then(({ listPage }) => ({ page: listPage(name) })), 'page'),
    groupOf[name] ?? 'Settings',
    name.charAt(0).toUpperCase() + name.slice(1),
  ]),
  ['/market', later(operating, 'Market'), 'Settings', 'Market'],
]
