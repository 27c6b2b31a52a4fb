import { Hono } from 'hono'
import type { AuthEnv } from '../auth/middleware.ts'
import type { Document } from './document.ts'
import { docsPage } from './page.ts'

/** The API's description, for programs and for people. Made once in an isolate's life, when it is first asked for. */
export function docsRoutes(describe: () => Document) {
  let document: string | undefined
  let page: { html: string; headers: Record<string, string> } | undefined
  return new Hono<AuthEnv>()
    .get('/v1/openapi.json', (c) => {
      document ??= JSON.stringify(describe())
      return c.body(document, 200, { 'Content-Type': 'application/json' })
    })
    .get('/v1/docs', async (c) => {
      page ??= await withHeaders(docsPage(describe()))
      return c.html(page.html, 200, page.headers)
    })
    .get('/openapi.json', (c) => c.redirect('/v1/openapi.json'))
    .get('/docs', (c) => c.redirect('/v1/docs'))
}

/** Nothing is loaded and nothing runs; of styles, the page's own as it stands there. */
async function withHeaders(html: string): Promise<{ html: string; headers: Record<string, string> }> {
  const [, style] = /<style>(.*?)<\/style>/s.exec(html) ?? []
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(style))
  const hash = btoa(String.fromCodePoint(...new Uint8Array(digest)))
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
  return { html, headers: { 'Content-Security-Policy': policy, 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' } }
}
