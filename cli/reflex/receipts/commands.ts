import { generateKeyPairSync } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { keyName, type KeySecret } from '../../../src/features/receipts/keys.ts'
import { openMask } from '../../../src/features/receipts/operations/receipts.ts'
import { CliError, UsageError } from '../../lib/cli-error.ts'
import { ask } from '../ask.ts'
import { handler, type Session } from '../session.ts'
import { written } from '../table.ts'
import { readKeys } from './read-keys.ts'
import { addProve, meantBy, VALUE } from './prove.ts'
import { addVerify } from './verify.ts'

const SECRET = 'REFLEX_RECEIPTS_KEY'

export function addReceipts(program: Command): void {
  const receipts = program.command('receipts').description('The keys that sign receipts of traces, and proofs of what they mask')
  receipts
    .command('init')
    .description('Make a key pair, or a new one after another, and say how the deployment gets it')
    .option('--output <file>', 'the file of the secret', 'receipts-key.json')
    .option('--after <file>', 'the secret, or a copy of /.well-known/reflex-receipts.json, whose keys the new one replaces')
    .action(handler(init))
  receipts
    .command('open <trace>')
    .description('Get the salt of a masked value that you have, with which others can prove it')
    .requiredOption('--value <value>', VALUE)
    .option('--scope <scope>', 'the scope whose log has the trace, if it went through several')
    .action(handler(open))
  addProve(receipts)
  addVerify(program)
}

function init({ print }: Session, { output, after }: { output: string; after?: string }): void {
  if (existsSync(output)) throw new UsageError(`${output} exists: a key that is lost signs no more. Name another file as --output.`)
  const now = new Date().toISOString()
  const { d, x } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  if (d === undefined || x === undefined) throw new CliError('This Node makes no Ed25519 keys.')
  const earlier = after === undefined ? [] : readKeys(after).keys.map(({ key, x, from, until }) => ({ key, x, from, until: until ?? now }))
  const secret: KeySecret = { keys: [{ key: keyName(x), x, d, from: now }, ...earlier] }
  writeFileSync(output, JSON.stringify(secret), { mode: 0o600, flag: 'wx' })
  const { key } = secret.keys[0]!
  print.result({ key, output }, () => [
    `The key ${key} is in ${output}. Who has the file can sign as you: keep it like a password, and out of the repository.`,
    `  npx wrangler secret put ${SECRET} < ${output}`,
    `For the local server, write it to .dev.vars as ${SECRET}='…'. Then publish the public keys:`,
    '  curl https://YOUR-DEPLOYMENT/.well-known/reflex-receipts.json',
  ])
}

async function open({ api, print, signal }: Session, trace_id: string, { value: text, scope }: { value: string; scope?: string }) {
  const [first, second] = meantBy(text)
  const of = (value: unknown) => ask({ api, signal }, openMask, { path: [trace_id], fields: { scope, value } })
  const opened = await of(first).catch((error: unknown) => {
    if (second === undefined || !(error instanceof CliError)) throw error
    return of(second)
  })
  print.result(opened, () => [`mask  ${written(opened.mask)}`, `salt  ${written(opened.salt)}`])
}
