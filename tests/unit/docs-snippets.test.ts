import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { blocksOf } from '../support/documented.ts'

test('the snippets of docs/clients.md compile as a user would compile them', async () => {
  const blocks = (await blocksOf('docs/clients.md')).filter(({ language }) => ['ts', 'tsx'].includes(language))
  expect(blocks.length).toBe(3)
  const folder = path.resolve('node_modules/.cache/docs-clients')
  await mkdir(folder, { recursive: true })
  try {
    await Promise.all(blocks.map(({ code, language, line }) => writeFile(path.join(folder, `line-${line}.${language}`), code)))
    const config = {
      extends: path.resolve('examples/clients/tsconfig.json'),
      compilerOptions: { incremental: false, types: ['node'] },
      include: ['*'],
    }
    await writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify(config))
    const run = promisify(execFile)(process.execPath, [path.resolve('node_modules/typescript/bin/tsc'), '-p', folder])
    expect(await run.catch(({ stdout }: { stdout: string }) => ({ stdout }))).toMatchObject({ stdout: '' })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
