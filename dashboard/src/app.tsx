import { ErrorBoundary, LocationProvider, Route, Router } from 'preact-iso'
import type { ComponentType } from 'preact'
import { session } from './api/session.ts'
import { Layout } from './layout/layout.tsx'
import { NotFound } from './layout/not-found.tsx'
import { SignIn } from './layout/sign-in.tsx'
import { declaredPages } from './declared-pages.ts'
import Overview from './pages/overview/page.tsx'
import { later } from './ui/page.tsx'

const running = () => import('./running.ts')
const deciding = () => import('./deciding.ts')
const operating = () => import('./operating.ts')

/** The overview comes with the shell; the other pages are in three files. */
const PAGES: Readonly<Record<string, ComponentType>> = {
  '/': Overview,
  '/scopes': later(running, 'Scopes'),
  '/scopes/:scope+': later(running, 'Scope'),
  '/traces': later(running, 'Traces'),
  '/traces/:id': later(running, 'Trace'),
  '/reflexes': later(deciding, 'Reflexes'),
  '/reflexes/:id': later(deciding, 'Reflex'),
  '/skills': later(deciding, 'Skills'),
  '/skills/:id': later(deciding, 'Skill'),
  '/learning': later(deciding, 'Learning'),
  '/decisions': later(deciding, 'Decisions'),
  '/market': later(operating, 'Market'),
  '/approvals': later(operating, 'Approvals'),
  '/dead-letters': later(operating, 'DeadLetters'),
  '/incidents': later(operating, 'Incidents'),
  '/keys': later(operating, 'Keys'),
  ...Object.fromEntries(
    declaredPages.map((page) => [page.path, later(async () => ({ page: (await operating()).listPage(page) }), 'page')]),
  ),
}

/** Links to other paths, such as the API's own page, leave the dashboard. */
const OWN_PATHS = /^\/(?!v1\/|health|metrics)/

export function App() {
  return (
    <LocationProvider scope={OWN_PATHS}>
      {session.value === null ? (
        <SignIn />
      ) : (
        <Layout>
          <ErrorBoundary>
            <Router>
              {Object.entries(PAGES).map(([path, component]) => (
                <Route key={path} path={path} component={component} />
              ))}
              <Route default component={NotFound} />
            </Router>
          </ErrorBoundary>
        </Layout>
      )}
    </LocationProvider>
  )
}
