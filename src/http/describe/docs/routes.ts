import { Hono, type Context } from 'hono'
import { escapeHtml } from '../../../base/html.ts'
import { nearestFirst } from '../../../base/nearest.ts'
import type { AuthEnv } from '../../auth/middleware.ts'
import { handleNotFound } from '../../problems/problem.ts'
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
      .get('/docs/*', (c) => documentation(c))
  )
}

/** The pages are files of the dashboard. An unknown name is answered with the nearest one. */
async function documentation(c: Context<AuthEnv>): Promise<Response> {
  const { ASSETS } = c.env
  if (ASSETS === undefined) return handleNotFound(c)
  const name = c.req.path.slice('/docs/'.length).replace(/(?:\.html|\/)$/, '')
  const listed = await ASSETS.fetch(new URL('/docs/pages.json', c.req.url))
  // Without a build of the dashboard, its start page is the answer to all addresses.
  const pages = await listed.json<string[]>().catch(() => null)
  if (pages === null || pages.includes(name) || /^(?:index)?$|\.(?:css|js|json)$/.test(name)) return ASSETS.fetch(c.req.raw)
  const source = name.replace(/\.md$/, '')
  if (pages.includes(source)) return c.redirect(`/docs/${source}`)
  const [nearest = ''] = nearestFirst(source, pages)
  return c.html(
    `<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <title>No such page · Reflex</title>
          <link rel="stylesheet" href="/docs/style.css" />
        </head>
        <body>
          <main id="content">
            <h1>There is no page ${escapeHtml(name)}</h1>
            <p>
              The nearest is <a href="/docs/${nearest}">${nearest}</a>. <a href="/docs/">The first page</a> has all of them, and a search.
            </p>
          </main>
        </body>
      </html> `,
    404,
    headers,
  )
}

/** The script, one of the dashboard's files, replaces the text. */
const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Reflex API</title>
    <link rel="icon" href="/icon.svg">
    <link rel="stylesheet" href="/docs/style.css">
  </head>
  <body>
    <header>
      <a href="/docs/">Reflex documentation</a>
      <label>Filter <input id="filter" type="search" autocomplete="off"></label>
      <label>Key <input id="key" type="password" autocomplete="off"></label>
      <nav aria-label="Site"><a href="/">Dashboard</a></nav>
    </header>
    <div class="columns">
      <nav aria-label="Groups"></nav>
      <main id="reference">
        <h1>Reflex API</h1>
        <p>The description is at <a href="/v1/openapi.json">/v1/openapi.json</a>. This page needs JavaScript, and the files that
        <code>npm run build</code> makes.</p>
      </main>
    </div>
    <script type="module" src="/reference/start.js"></script>
  </body>
</html>
`

/** Nothing is loaded from, or sent to, another host. */
const headers = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
}
