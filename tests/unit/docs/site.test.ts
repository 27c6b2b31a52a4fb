import { readFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { documentation, type Section } from '../../../dashboard/documentation/render.ts'
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
    expect(site.size).toBe(names.length + 3)
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

  test('has sections for its search, none of which begins in a block of code', () => {
    const sections = JSON.parse(site.get('search.json') ?? '[]') as Section[]
    const anchors = sections.filter(({ page, anchor }) => {
      const html = site.get(path.posix.normalize(served(page === './' ? '.' : page)))
      return html === undefined || !html.includes(`id="${anchor}"`)
    })
    expect(anchors.map(({ page, heading }) => `${page}: ${heading}`)).toEqual([])
    expect(sections.some(({ page, heading, text }) => page === 'approvals' && heading !== '' && text.includes('person'))).toBe(true)
  })
})
