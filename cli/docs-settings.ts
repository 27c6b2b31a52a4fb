import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { settingsPage } from './docs/settings-page.ts'

/** Writes docs/settings.md anew: after each change of a setting. */
await writeFile(path.join(import.meta.dirname, '../docs/settings.md'), settingsPage())
