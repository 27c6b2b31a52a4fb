import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { documented, type Block } from '../tests/support/documented.ts'

/** Writes the code of docs/ and the README to `documented/`, where `tsc` checks its types. */
const folder = 'documented'
/** docs/settings.md shows types in a notation of its own. */
const isCode = ({ page, code, skipped }: Block): boolean => skipped === null && page !== 'docs/settings.md' && code.includes('import ')

await rm(folder, { recursive: true, force: true })
await mkdir(folder)
for (const { page, line, code } of (await documented('ts')).filter(isCode)) {
  const name = `${page.replace(/\.md$/, '').replaceAll('/', '.')}.line-${line}.ts`
  await writeFile(path.join(folder, name), `${code}\nexport {}\n`)
}
