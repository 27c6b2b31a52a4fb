import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { UsageError } from '../../lib/cli-error.ts'

/** The nearest folder with a wrangler.toml, from the current folder upwards. */
export function projectFolder(): string {
  for (let folder = resolve('.'); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'wrangler.toml'))) return folder
    if (folder === dirname(folder)) throw new UsageError('There is no wrangler.toml in this folder.', 'reflex init DIR creates a project.')
  }
}
