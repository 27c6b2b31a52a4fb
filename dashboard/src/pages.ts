import type { ComponentType } from 'preact'
import Overview from './pages/overview/page.tsx'
import { later } from './ui/page.tsx'

const running = () => import('./running.ts')
const deciding = () => import('./deciding.ts')
const operating = () => import('./operating.ts')

/** The features that declare a list as a page: `audit` of `./audit/page.ts`. */
const declared = Object.keys(import.meta.glob('./*/page.ts', { base: '../../src/features' })).map((file) => file.slice(2, -8))

type PageEntry = readonly [path: string, component: ComponentType, link?: string]

/** All pages, those with a link in its order. The overview comes with the shell, others later. */
export const pages: readonly PageEntry[] = [
  ['/', Overview, 'Overview'],
  ['/scopes', later(running, 'Scopes'), 'Scopes'],
  ['/scopes/:scope+', later(running, 'Scope')],
  ['/traces', later(running, 'Traces'), 'Traces'],
  ['/traces/:id', later(running, 'Trace')],
  ['/reflexes', later(deciding, 'Reflexes'), 'Reflexes'],
  ['/reflexes/:id', later(deciding, 'Reflex')],
  ['/decisions', later(deciding, 'Decisions'), 'Decision models'],
  ['/skills', later(deciding, 'Skills'), 'Skills'],
  ['/skills/:id', later(deciding, 'Skill')],
  ['/learning', later(deciding, 'Learning'), 'Learning'],
  ['/market', later(operating, 'Market'), 'Market'],
  ['/approvals', later(operating, 'Approvals'), 'Approvals'],
  ['/dead-letters', later(operating, 'DeadLetters'), 'Dead letters'],
  ['/incidents', later(operating, 'Incidents'), 'Incidents'],
  ['/keys', later(operating, 'Keys'), 'Keys'],
  ...declared.map((name): PageEntry => [
    `/${name}`,
    later(() => operating().then(({ listPage }) => ({ page: listPage(name) })), 'page'),
    name.charAt(0).toUpperCase() + name.slice(1),
  ]),
]
