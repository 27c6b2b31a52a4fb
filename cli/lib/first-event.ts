import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { quoted } from './text.ts'

type Form = { scope: string; event: Readonly<Record<string, unknown>>; fields: readonly { name: string; value: string }[] }

/** Chats are served by the agents of this package. */
const CHAT: Form = { scope: 'chat/me', event: { type: 'ws.message', connection_id: 'me' }, fields: [{ name: 'content', value: 'hello' }] }

/** True if the project has the page at `/try`, as each project of `reflex init` has. */
export const hasTry = (project: string): boolean => formOf(project) !== CHAT

/** A command that sends the first event of a project and waits for its outcome. */
export function firstEvent(project: string, url: string): string[] {
  const { scope, event, fields } = formOf(project)
  const body = { ...event, ...Object.fromEntries(fields.map(({ name, value }) => [name, value])) }
  return [
    `curl -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "${url}/v1/scopes/${encodeURIComponent(scope)}/events?wait=outcome" \\`,
    `  -d ${quoted(JSON.stringify(body))}`,
  ]
}

function formOf(project: string): Form {
  try {
    return JSON.parse(readFileSync(join(project, 'src/try.json'), 'utf8')) as Form
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return CHAT
    throw error
  }
}
