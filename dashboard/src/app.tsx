import { ErrorBoundary, LocationProvider, Route, Router } from 'preact-iso'
import type { ComponentType } from 'preact'
import { session } from './api/session.ts'
import { Layout } from './layout/layout.tsx'
import { NotFound } from './layout/not-found.tsx'
import { later } from './ui/page.tsx'

type Module = { default: ComponentType }
const page = (load: () => Promise<Module>) => later(() => load().then((module) => module.default))

const SignIn = later(() => import('./layout/sign-in.tsx').then((module) => module.SignIn))
const Overview = page(() => import('./pages/overview/page.tsx'))
const Scopes = page(() => import('./pages/scopes/page.tsx'))
const Scope = page(() => import('./pages/scope/page.tsx'))
const Traces = page(() => import('./pages/traces/page.tsx'))
const Trace = page(() => import('./pages/trace/page.tsx'))
const Reflexes = page(() => import('./pages/reflexes/page.tsx'))
const Reflex = page(() => import('./pages/reflex/page.tsx'))
const Skills = page(() => import('./pages/skills/page.tsx'))
const Skill = page(() => import('./pages/skill/page.tsx'))
const Learning = page(() => import('./pages/learning/page.tsx'))
const Decisions = page(() => import('./pages/decisions/page.tsx'))
const Market = page(() => import('./pages/market/page.tsx'))
const Approvals = page(() => import('./pages/approvals/page.tsx'))
const DeadLetters = page(() => import('./pages/dead-letters/page.tsx'))
const Incidents = page(() => import('./pages/incidents/page.tsx'))
const Keys = page(() => import('./pages/keys/page.tsx'))

/** Links to other paths, such as the API's own page, leave the dashboard. */
const OWN_PATHS = /^\/(?!v1\/|health|metrics)/

export function App() {
  return (
    <LocationProvider scope={OWN_PATHS}>
      {session.value === null ? (
        <ErrorBoundary>
          <SignIn />
        </ErrorBoundary>
      ) : (
        <Layout>
          <ErrorBoundary>
            <Router>
              <Route path="/" component={Overview} />
              <Route path="/scopes" component={Scopes} />
              <Route path="/scopes/:scope+" component={Scope} />
              <Route path="/traces" component={Traces} />
              <Route path="/traces/:id" component={Trace} />
              <Route path="/reflexes" component={Reflexes} />
              <Route path="/reflexes/:id" component={Reflex} />
              <Route path="/skills" component={Skills} />
              <Route path="/skills/:id" component={Skill} />
              <Route path="/learning" component={Learning} />
              <Route path="/decisions" component={Decisions} />
              <Route path="/market" component={Market} />
              <Route path="/approvals" component={Approvals} />
              <Route path="/dead-letters" component={DeadLetters} />
              <Route path="/incidents" component={Incidents} />
              <Route path="/keys" component={Keys} />
              <Route default component={NotFound} />
            </Router>
          </ErrorBoundary>
        </Layout>
      )}
    </LocationProvider>
  )
}
