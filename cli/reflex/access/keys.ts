import { Option, type Command } from 'commander'
import type { z } from 'zod'
import type { key } from '../../../src/contract/principal.ts'
import { pages, route } from '../pages.ts'
import { writePrivate } from '../profiles.ts'
import { handler, type Session } from '../session.ts'
import type { Column } from '../table.ts'
import { limitOption } from '../values.ts'

type Key = z.infer<typeof key>
type Created = Omit<Key, 'created_at'> & { key: string }
type Wanted = { role: string[]; scope: string[]; output?: string }

const columns: Column<Key>[] = [
  { title: 'ID', of: ({ id }) => id },
  { title: 'NAME', of: ({ name }) => name },
  { title: 'ROLES', of: ({ roles }) => roles.join(' ') },
  { title: 'CREATED', of: ({ created_at }) => created_at },
  { title: 'SCOPES', of: ({ scopes }) => scopes.join(' ') },
]

export function addKeys(program: Command): void {
  const keys = program.command('keys').description('Create, list and revoke keys (role admin)')
  keys
    .command('create <name>')
    .description('Create a key; it is shown only once')
    .addOption(new Option('--role <role...>', 'admin, operator, publisher, viewer, or a name for policies').makeOptionMandatory())
    .option('--scope <pattern...>', 'the scopes it covers', ['*'])
    .option('--output <file>', 'write the key to a file that only you can read, instead of showing it')
    .action(handler(create))
  keys
    .command('list')
    .description('List keys, newest first')
    .addOption(limitOption())
    .action(
      handler(async ({ api, print, signal }, { limit }: { limit: number }) => {
        print.page(await pages<Key>(api(), { parts: ['keys'], limit, most: 1000, signal }), columns, 'There are no keys.')
      }),
    )
  keys
    .command('revoke <id...>')
    .description('Delete keys, by id')
    .action(
      handler(async ({ api, print, signal }, ids: string[]) => {
        for (const id of ids) {
          await api().json(route(['keys', id]), { method: 'DELETE', signal })
          print.item({ revoked: id }, () => `Revoked ${id}. It stops working everywhere within 30 seconds.`)
        }
      }),
    )
}

async function create({ api, print, signal }: Session, name: string, { role, scope, output }: Wanted): Promise<void> {
  const body = { name, roles: role, scopes: scope }
  const { key, ...about } = await api().json<Created>('/v1/keys', { method: 'POST', body, signal })
  if (output !== undefined) writePrivate(output, `${key}\n`)
  print.result(output === undefined ? { ...about, key } : { ...about, output }, () => [
    `Created ${about.id} (${about.name}): ${about.roles.join(', ')} on ${about.scopes.join(', ')}.`,
    output === undefined ? `The key, which is not shown again: ${key}` : `The key is in ${output}.`,
  ])
}
