import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { reflexHere } from '../../../e2e/command-line.ts'
import { keyProblem, publicKeys } from '../../../../src/features/receipts/keys.ts'
import { LinkedLog, said } from '../../../support/receipts.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'receipts-cli-'))
const file = (name: string): string => path.join(folder, name)
const nowhere = { REFLEX_URL: 'http://127.0.0.1:9', REFLEX_KEY: 'none' }
const run = (...args: string[]) => reflexHere(args, nowhere)
const secretIn = (name: string) => ({ REFLEX_RECEIPTS_KEY: readFileSync(file(name), 'utf8') })

test('receipts init makes a key that only its owner reads, keeps it, and the next one names those before', async () => {
  expect(await run('receipts', 'init', '--output', file('one.json'))).toMatchObject({ code: 0 })
  expect(statSync(file('one.json')).mode & 0o777).toBe(0o600)
  expect(await run('receipts', 'init', '--output', file('one.json'))).toMatchObject({ code: 2 })
  expect(await run('receipts', 'init', '--after', file('one.json'), '--output', file('two.json'))).toMatchObject({ code: 0 })
  const [first] = publicKeys(secretIn('one.json')).keys
  const { keys } = publicKeys(secretIn('two.json'))
  expect(keyProblem(secretIn('two.json'))).toBeNull()
  expect(keys).toMatchObject([{ until: null }, { key: first?.key, x: first?.x, until: expect.any(String) as string }])
  expect(readFileSync(file('two.json'), 'utf8').match(/"d":/g)).toHaveLength(1)
})

test('a key that was lost is followed by one that is made after the published keys', async () => {
  const log = new LinkedLog()
  writeFileSync(file('published.json'), JSON.stringify(publicKeys(log.env)))
  expect(await run('receipts', 'init', '--after', file('published.json'), '--output', file('three.json'))).toMatchObject({ code: 0 })
  await log.write(said('signed by the lost key'))
  const next = new LinkedLog({ key: readFileSync(file('three.json'), 'utf8'), sqlite: log.sqlite })
  await next.write(said('after it'))
  writeFileSync(file('receipt.json'), await next.receipt())
  writeFileSync(file('keys.json'), JSON.stringify(publicKeys(next.env)))
  const { code, stdout } = await run('verify', file('receipt.json'), '--keys', file('keys.json'))
  expect(stdout).toContain('2 entries of the log')
  expect(code).toBe(0)
  // The keys from before do not vouch for the new one.
  const old = await run('verify', file('receipt.json'), '--keys', file('published.json'))
  expect(old.stdout).toContain('is not among the keys that are trusted')
  expect(old.code).toBe(1)
})
