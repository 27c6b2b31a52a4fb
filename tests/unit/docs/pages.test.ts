import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { llmsText } from '../../../cli/docs/llms-text.ts'
import { pages } from '../../support/documented.ts'

const all = [...(await pages()), 'AGENTS.md']
const docs = all.filter((page) => page.startsWith('docs/'))
const withoutCode = (page: string): string => readFileSync(page, 'utf8').replaceAll(/^ *```[^]*?^ *```$/gm, '')

/** As GitHub names the heading's anchor. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')
const anchorsIn = (page: string): string[] => Array.from(withoutCode(page).matchAll(/^#+ (.*)$/gm), ([, heading = '']) => anchorOf(heading))

describe('the documentation', () => {
  test.each(all)('%s has no broken link', (page) => {
    const targets = Array.from(
      withoutCode(page).matchAll(/\]\(([^)\s]+)\)|src(?:set)?="([^"]+)"/g),
      ([, link, picture]) => link ?? picture ?? '',
    )
    const broken = targets
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [file = '', anchor] = target.split('#')
        const at = file === '' ? page : path.join(path.dirname(page), file)
        return !existsSync(at) || (anchor !== undefined && !anchorsIn(at).includes(anchor))
      })
    expect(broken).toEqual([])
  })

  test('the README fits on 150 lines and leads to each page', () => {
    const readme = readFileSync('README.md', 'utf8')
    expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(150)
    expect(docs.filter((page) => !readme.includes(`(${page})`))).toEqual([])
  })

  test('llms.txt is what the pages say', () => {
    expect(readFileSync('llms.txt', 'utf8'), 'run: npm run docs:reference').toBe(llmsText(docs))
  })
})
