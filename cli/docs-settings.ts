import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { settingsPage } from './docs/settings-page.ts'

/** Regenerates docs/settings.md. Run it after each change of a setting. */
await writeFile(path.join(import.meta.dirname, '../docs/settings.md'), settingsPage())
