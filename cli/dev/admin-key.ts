import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'

/** `own` is a generated key that is not in .dev.vars and must be passed to the server. */
export type AdminKey = { key: string; own: boolean }

/** Returns the key in .dev.vars, or a generated one that stays the same for this state folder. */
export function adminKey(folders: { project: string; state: string }): AdminKey {
  const configured = configuredKey(folders.project)
  if (configured !== null) return { key: configured, own: false }
  const path = join(folders.state, 'admin-key')
  const kept = textOf(path).trim()
  if (kept !== '') return { key: kept, own: true }
  const key = `dev-${randomUUID().replaceAll('-', '')}`
  mkdirSync(folders.state, { recursive: true })
  writeFileSync(path, `${key}\n`, { mode: 0o600 })
  return { key, own: true }
}

/** The key of a project's .dev.vars, or null. */
export const configuredKey = (project: string): string | null =>
  parseEnv(textOf(join(project, '.dev.vars')))['REFLEX_ADMIN_KEY']?.trim() || null

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}
