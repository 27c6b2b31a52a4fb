import { randomUUID } from 'node:crypto'
import { LiveLine } from '../../cli/learning/live-line.ts'
import { connect, type Api } from '../../cli/lib/api.ts'
import { unlessAborted } from '../../cli/lib/interruption.ts'
import { listen } from '../../cli/lib/listen.ts'
import { startServer } from '../../cli/lib/local-server.ts'
import { temporaryFolder } from '../../cli/lib/temporary-folder.ts'
import type { SettingsPatch } from '../../src/contract/settings/settings.ts'
import type { Message } from './input.ts'
import { startTeacher } from './teacher.ts'

export type Stage = { api: Api; host: string; line: LiveLine }
type Given = { name: string; messages: readonly Message[]; signal: AbortSignal }

/**
 * Runs an example on the real local server, with a script that acts as the model and a service that
 * files. All of it is stopped, and its state removed, however the example ends.
 */
export async function onStage<Played>({ name, messages, signal }: Given, play: (stage: Stage) => Promise<Played>): Promise<Played> {
  const folder = temporaryFolder(`reflex-${name}-`)
  const key = `${name}-${randomUUID().replaceAll('-', '')}`
  const teacher = await startTeacher(messages)
  const filing = await listen(() => ({ status: 200, body: { filed: true } }))
  const line = new LiveLine(process.stderr)
  line.show('starting the real Worker on this machine; no network, state in a temporary folder')
  const starting = startServer({ persist_to: folder.path, vars: { REFLEX_ADMIN_KEY: key, ...teacher.vars }, signal })
  try {
    const server = await unlessAborted(signal, starting)
    return await play({ api: connect(server.url, key), host: filing.host, line })
  } finally {
    line.close()
    await (await starting.catch(() => null))?.stop()
    teacher.stop()
    filing.stop()
    folder.remove()
  }
}

/** Settings of a scope that files messages. The script needs no instructions; a model would. */
export const filing = (host: string): SettingsPatch => ({
  agent: 'prompted',
  instructions: 'File each message into the folder that fits, or leave it where it is.',
  allowed_hosts: [host],
  http_tools: [
    {
      name: 'http.file',
      description: 'Files a message',
      method: 'POST',
      url: `http://${host}/file`,
      body: { folder: '{{folder}}' },
    },
    // Proof alone lets a reflex do what can be undone; anything else waits for a person.
    {
      name: 'http.unfile',
      description: 'Returns a message to the inbox',
      method: 'POST',
      url: `http://${host}/unfile`,
      body: { folder: '{{folder}}' },
      undoes: { tool: 'http.file', match: ['folder'] },
    },
  ],
})

export const eventsOf = (messages: readonly Message[]) =>
  messages.map(({ id, timestamp, source, text }) => ({ id, type: 'ws.message', source, timestamp, connection_id: 'mail', content: text }))
