import type { Api } from '../lib/api.ts'
import { readProjectFile } from './project-file.ts'

export const REFLEX = 'ssh-brute-force'
export const REFLEX_FILE = `examples/reflexes/${REFLEX}.js`

/**
 * The context of the dry run before registration: a log line instead of the usual sample's message.
 */
const sample = {
  type: 'log.line',
  host: 'web-1',
  line: 'Mar  9 06:45:18 web-1 sshd[4711]: Failed password for root from 203.0.113.7 port 4242 ssh2',
}

/** Registers the demo's reflex and sets it as the chain of each scope. */
export async function setReflex(api: Api, scopes: readonly string[], signal: AbortSignal): Promise<void> {
  const body = {
    id: REFLEX,
    code: await readProjectFile(REFLEX_FILE),
    description: 'Blocks a public address that guesses passwords.',
    sample,
  }
  await api.json<unknown>('/v1/reflexes', { method: 'POST', body, signal })
  for (const scope of scopes)
    await api.json<unknown>(`/v1/scopes/${encodeURIComponent(scope)}`, { method: 'PATCH', body: { reflexes: [{ id: REFLEX }] }, signal })
}
