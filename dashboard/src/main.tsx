import { render } from 'preact'
import { applyTheme } from './layout/theme.ts'
// Each concept has a stylesheet; a page's own is imported by the page.
import './css/base.css'
import './css/layout.css'
import './css/controls.css'
import './css/table.css'
import './css/parts.css'
import { ErrorBoundary, LocationProvider, Route, Router } from 'preact-iso'
import { session } from './api/session.ts'
import { Layout } from './layout/layout.tsx'
import { NotFound } from './layout/not-found.tsx'
import { SignIn } from './layout/sign-in.tsx'
import { pages } from './pages.ts'

/** Links to other paths, such as the API's own page, leave the dashboard. */
const OWN_PATHS = /^\/(?!v1\/|health|metrics)/

function App() {
  return (
    <LocationProvider scope={OWN_PATHS}>
      {session.value === null ? (
        <SignIn />
      ) : (
        <Layout>
          <ErrorBoundary>
            <Router>
              {pages.map(([path, component]) => (
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

applyTheme()
render(<App />, document.body)
