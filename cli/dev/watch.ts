import { existsSync, watch, type FSWatcher } from 'node:fs'
import { join } from 'node:path'

/** `settings`: a file that wrangler reads only at start. */
export type FileChange = { path: string; kind: 'settings' | 'source' }
type FileChanges = { next: (kind?: FileChange['kind']) => Promise<FileChange>; close: () => void }

const SETTINGS = '.dev.vars'
const SOURCES = new Set(['wrangler.toml', 'package.json'])
const SOURCE_FOLDERS = ['src', 'migrations', 'examples/agents']
/** An editor writes a file in several steps. */
const QUIET_MS = 150

/** Watches the files of a deployment. `next` resolves at the first change after its call. */
export function watchChanges(project: string): FileChanges {
  const waiting = new Set<{ kind: FileChange['kind'] | undefined; resolve: (change: FileChange) => void }>()
  const timers = new Map<string, NodeJS.Timeout>()
  const report = (change: FileChange) => {
    for (const waiter of waiting) {
      if (waiter.kind !== undefined && waiter.kind !== change.kind) continue
      waiting.delete(waiter)
      waiter.resolve(change)
    }
  }
  const noticed = (change: FileChange) => {
    clearTimeout(timers.get(change.path))
    timers.set(
      change.path,
      setTimeout(() => report(change), QUIET_MS),
    )
  }
  const watchers: FSWatcher[] = [
    watch(project, (_event, name) => {
      if (name === null) return
      if (name === SETTINGS) noticed({ path: name, kind: 'settings' })
      if (SOURCES.has(name)) noticed({ path: name, kind: 'source' })
    }),
    ...SOURCE_FOLDERS.filter((folder) => existsSync(join(project, folder))).map((folder) =>
      watch(join(project, folder), { recursive: true }, (_event, name) => noticed({ path: join(folder, name ?? ''), kind: 'source' })),
    ),
  ]
  return {
    next: (kind) => new Promise((resolve) => waiting.add({ kind, resolve })),
    close: () => {
      for (const watcher of watchers) watcher.close()
      for (const timer of timers.values()) clearTimeout(timer)
    },
  }
}
