import { Hono } from 'hono'
import type { AuthEnv } from '../../auth/middleware.ts'
import type { Document } from './document.ts'

/** The API description, for programs and people, built once per isolate on first use. */
export function docsRoutes(describe: () => Document) {
  let document: string | undefined
  return (
    new Hono<AuthEnv>()
      .get('/v1/openapi.json', (c) => {
        document ??= JSON.stringify(describe())
        return c.body(document, 200, { 'Content-Type': 'application/json' })
      })
      .get('/v1/docs', (c) => c.html(page, 200, headers))
      .get('/openapi.json', (c) => c.redirect('/v1/openapi.json'))
      // An older wrangler.toml has the Worker answer this address.
      .get('/docs', (c) => c.redirect('/docs/'))
  )
}

/** Swagger UI comes with the dashboard's files, and replaces the text. */
const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Reflex API</title>
    <link rel="icon" href="/icon.svg">
    <link rel="stylesheet" href="/reference/swagger-ui.css">
  </head>
  <body>
    <main id="reference">
      <h1>Reflex API</h1>
      <p>The description is at <a href="/v1/openapi.json">/v1/openapi.json</a>. This page needs JavaScript, and the files that
      <code>npm run build</code> makes.</p>
    </main>
    <script src="/reference/swagger-ui-bundle.js"></script>
    <script src="/reference/start.js"></script>
  </body>
</html>
`

/** Swagger UI sets styles of elements. Nothing is loaded from, or sent to, another host. */
const headers = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
}
