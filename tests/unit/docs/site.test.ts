import { readFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { documentation } from '../../../dashboard/documentation/render.ts'
import { pages } from '../../support/documented.ts'

let names: string[]
let site: Map<string, string>
beforeAll(async () => {
  names = (await pages()).filter((page) => page.startsWith('docs/')).map((page) => page.slice('docs/'.length))
  site = documentation(readFileSync('README.md', 'utf8'), new Map(names.map((name) => [name, readFileSync(`docs/${name}`, 'utf8')])))
})

/** The file that a server of static files sends for an address without an ending. */
const served = (address: string): string =>
  address === '.' || address.endsWith('/') ? path.posix.join(address, 'index.html') : `${address}.html`

describe('the documentation at /docs', () => {
  test('has each page of docs/, and a start page that leads to all but the decisions', () => {
    expect(site.size).toBe(names.length + 2)
    const start = site.get('index.html') ?? ''
    const linked = new Set(names.filter((name) => start.includes(`href="${name.replace(/README\.md$/, '').replace(/\.md$/, '')}"`)))
    expect(names.filter((name) => !linked.has(name) && !/^decisions\/.|^(?:walk|mutation)\.md$/.test(name))).toEqual([])
  })

  test('has no link that leads nowhere', () => {
    const broken: string[] = []
    for (const [file, html] of site) {
      for (const [, href = ''] of html.matchAll(/href="([^"]*)"/g)) {
        if (/^(?:[a-z]+:|\/)/.test(href)) continue
        const [address = '', anchor] = href.split('#')
        const folder = path.posix.dirname(file)
        const target = address === '' ? file : served(address === './' ? folder + '/' : path.posix.join(folder, address))
        const found = site.get(path.posix.normalize(target))
        if (found === undefined || (anchor !== undefined && !found.includes(`id="${anchor}"`))) broken.push(`${file}: ${href}`)
      }
    }
    expect(broken).toEqual([])
  })

  test('needs at most 150 kB for its first page', () => {
    const files = ['src/css/base.css', 'documentation/style.css', 'public/docs/search.js']
    const assets = files.map((name) => readFileSync(`dashboard/${name}`, 'utf8'))
    expect(Buffer.byteLength([site.get('index.html') ?? '', ...assets].join(''))).toBeLessThanOrEqual(150_000)
  })

  test('names its pages for the search, which links to their headings', () => {
    const listed = JSON.parse(site.get('pages.json') ?? '[]') as string[]
    expect(listed).toHaveLength(names.length)
    for (const page of listed) {
      const html = site.get(`${page}.html`) ?? site.get(`${page}/index.html`) ?? ''
      const content = html.slice(html.indexOf('<main id="content">'))
      expect([page, content]).toEqual([page, expect.stringMatching(/^<main id="content">\s*<h1 id="[^"]+">/)])
      expect(content).not.toMatch(/<h\d(?! id="[^"]+">)/)
    }
  })
})
