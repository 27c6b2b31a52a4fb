import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { documented, type Block } from '../tests/support/documented.ts'

/**
 * Writes the code of docs/ and the README to `documented/`, where `tsc` checks its types: with
 * the types of a Worker, or in `browser/` with the types of a page (`tsc -p examples/clients`).
 */
const folder = 'documented'
const ofBrowsers = 'docs/clients.md'
/** docs/settings.md shows types in a notation of its own. */
const isCode = ({ page, code, skipped }: Block): boolean => skipped === null && page !== 'docs/settings.md' && code.includes('import ')

await rm(folder, { recursive: true, force: true })
await mkdir(path.join(folder, 'browser'), { recursive: true })
for (const { page, line, language, code } of [...(await documented('ts')), ...(await documented('tsx'))].filter(isCode)) {
  const name = `${page.replace(/\.md$/, '').replaceAll('/', '.')}.line-${line}.${language}`
  await writeFile(path.join(folder, page === ofBrowsers ? 'browser' : '', name), `${code}\nexport {}\n`)
}
