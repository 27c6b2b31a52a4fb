import type { Command } from 'commander'
import { jsonValue } from '../../../src/base/json.ts'
import { UsageError } from '../../lib/cli-error.ts'
import { handler, type ExitOutcome, type Session } from '../session.ts'
import { written } from '../table.ts'
import { fileText } from '../values.ts'
import { readKeys } from './read-keys.ts'

export const VALUE = 'the value, as a text or as JSON; @file, or @- for standard input, keeps it out of the history of the shell'
const HELP = `
The salt proves one value to whoever has it, and lets whoever has it guess that value: give it to
those alone who may see the value. Exit with 1 where the value is not what was masked.

Example:
  reflex receipts open TRACE --value @-
  reflex receipts prove receipt.json --value @- --salt SALT --field password --keys reflex-receipts.json`

export function addProve(receipts: Command): void {
  receipts
    .command('prove <file>')
    .description('Prove what a masked field of a receipt stands for, without the server')
    .requiredOption('--value <value>', VALUE)
    .requiredOption('--salt <salt>', 'the salt, from reflex receipts open')
    .option('--field <field>', 'the field that has it, such as password or input.password')
    .option('--keys <file>', 'the trusted keys, a copy of /.well-known/reflex-receipts.json')
    .addHelpText('after', HELP)
    .action(handler(prove))
}

/** A value is meant as a text, or as the JSON that the text is. */
export function meantBy(text: string): unknown[] {
  const given = text.startsWith('@') ? fileText(text.slice(1)).replace(/\r?\n$/, '') : text
  const json = jsonValue(given)
  return json === undefined ? [given] : [given, json]
}

type Flags = { value: string; salt: string; field?: string; keys?: string }

async function prove({ print }: Session, file: string, { value: text, salt, field, keys }: Flags): Promise<ExitOutcome> {
  if (!/^[\da-f]{64}$/.test(salt)) throw new UsageError('--salt takes the 64 hexadecimal digits that reflex receipts open prints.')
  const [{ checkReceipt }, { provenAt }] = await Promise.all([
    import('../../../src/features/receipts/verify.ts'),
    import('../../../src/features/receipts/prove.ts'),
  ])
  const { flaws, checked } = checkReceipt(fileText(file), keys === undefined ? null : readKeys(keys))
  const found = checked && flaws.length === 0 ? meantBy(text).flatMap((value) => provenAt(checked, { value, salt })) : []
  const isAsked = (at: string) => field === undefined || at === field || at.endsWith(`.${field}`)
  const places = found.filter((place) => place.signed && isAsked(place.field))
  const ok = places.length > 0
  print.result({ ok, trusted: keys !== undefined, flaws, places }, (paint) => [
    ...flaws.map((flaw) => `${paint('red', '✗')} ${written(flaw)}`),
    ...places.map(
      (at) =>
        `${paint('green', '✓')} ${written(at.scope)} entry ${at.seq} (${at.kind}): ${written(at.field)} ${at.whole ? 'is' : 'quotes'} the value`,
    ),
    ...(ok || flaws.length > 0
      ? []
      : [
          `${paint('red', '✗')} No signed entry of the file has the mask of this value and salt${field === undefined ? '' : ` as ${written(field)}`}.`,
        ]),
    ...(keys === undefined ? [paint('yellow', 'The keys are from the file itself: --keys names keys that you trust.')] : []),
  ])
  return ok ? undefined : 1
}
