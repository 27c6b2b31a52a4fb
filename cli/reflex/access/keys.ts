import { Option, type Command } from 'commander'
import { create as createKey, keys, list, remove } from '../../../src/contract/operations/keys.ts'
import { ask } from '../ask.ts'
import { addNoun, addOperation } from '../operation.ts'
import { writePrivate } from '../profiles.ts'
import { handler, type Session } from '../session.ts'
import { isoTime } from '../values.ts'

type Wanted = { role: string[]; scope: string[]; teaches?: true; expires?: string; output?: string }

export function addKeys(program: Command): void {
  const noun = addNoun(program, keys)
  noun
    .command('create <name>')
    .description('Create a key; it is shown only once')
    .addOption(new Option('--role <role...>', 'admin, operator, publisher, viewer, or a name for policies').makeOptionMandatory())
    .option('--scope <pattern...>', 'the scopes it covers', ['*'])
    .option('--teaches', 'its scopes may learn from its events alone: for a person or a system of yours')
    .addOption(new Option('--expires <time>', 'refused from then on: an ISO time').argParser(isoTime))
    .option('--output <file>', 'write the key to a file that only you can read, instead of showing it')
    .action(handler(create))
  addOperation(noun, list)
  addOperation(noun, remove)
}

async function create({ api, print, signal }: Session, name: string, { role, scope, teaches, expires, output }: Wanted): Promise<void> {
  const fields = { name, roles: role, scopes: scope, teaches, expires_at: expires }
  const { key, ...about } = await ask({ api, signal }, createKey, { fields })
  if (output !== undefined) writePrivate(output, `${key}\n`)
  print.result(output === undefined ? { ...about, key } : { ...about, output }, () => [
    `Created ${about.id} (${about.name}): ${about.roles.join(', ')} on ${about.scopes.join(', ')}.`,
    output === undefined ? `The key, which is not shown again: ${key}` : `The key is in ${output}.`,
  ])
}
