import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'

type Folders = { project: string; state: string }
/** `own` is a generated secret that is not in .dev.vars and must be passed to the server. */
type LocalSecret = { value: string; own: boolean }

/** The secrets that a local server needs: one that is generated stays the same for its state. */
export const adminKey = (folders: Folders): LocalSecret => secretOf(folders, 'REFLEX_ADMIN_KEY', 'admin-key')
export const redactionSecret = (folders: Folders): LocalSecret => secretOf(folders, 'REFLEX_REDACTION_SECRET', 'redaction-secret')

function secretOf({ project, state }: Folders, name: string, file: string): LocalSecret {
  const configured = devVariable(project, name)
  if (configured !== null) return { value: configured, own: false }
  const path = join(state, file)
  const kept = textOf(path).trim()
  if (kept !== '') return { value: kept, own: true }
  const value = `dev-${randomUUID().replaceAll('-', '')}`
  mkdirSync(state, { recursive: true })
  writeFileSync(path, `${value}\n`, { mode: 0o600 })
  return { value, own: true }
}

/** The variable or secret of this name in a project's .dev.vars, or null. */
export const devVariable = (project: string, name: string): string | null =>
  parseEnv(textOf(join(project, '.dev.vars')))[name]?.trim() || null

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}
