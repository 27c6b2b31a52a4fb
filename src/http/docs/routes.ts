import { Hono } from 'hono'
import type { AuthEnv } from '../auth/middleware.ts'
import type { Document } from './document.ts'
import { docsPage } from './page.ts'

/** The API description, for programs and people, built once per isolate on first use. */
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

/** The policy allows nothing but the page's own inline style. */
async function withHeaders(html: string): Promise<{ html: string; headers: Record<string, string> }> {
  const [, style] = /<style>(.*?)<\/style>/s.exec(html) ?? []
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(style))
  const hash = btoa(String.fromCodePoint(...new Uint8Array(digest)))
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
  return { html, headers: { 'Content-Security-Policy': policy, 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' } }
}
