import { Hono } from 'hono'
import type { AuthEnv } from '../../auth/middleware.ts'
import type { Document } from './document.ts'
import { docsPage } from './page.ts'
import { style } from './style.ts'

/** The API's description, for programs and for people. Made once in an isolate's life, when it is first asked for. */
export function docsRoutes(describe: () => Document) {
  let document: string | undefined
  let page: { html: string; policy: string } | undefined
  return new Hono<AuthEnv>()
    .get('/v1/openapi.json', (c) => {
      document ??= JSON.stringify(describe())
      return c.body(document, 200, { 'Content-Type': 'application/json' })
    })
    .get('/v1/docs', async (c) => {
      page ??= { html: docsPage(describe()), policy: await contentPolicy() }
      return c.html(page.html, 200, { 'Content-Security-Policy': page.policy, 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' })
    })
    .get('/openapi.json', (c) => c.redirect('/v1/openapi.json'))
    .get('/docs', (c) => c.redirect('/v1/docs'))
}

/** Nothing is loaded and nothing runs; of styles, the page's own. */
async function contentPolicy(): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(style))
  const hash = btoa(String.fromCodePoint(...new Uint8Array(digest)))
  return `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
}
