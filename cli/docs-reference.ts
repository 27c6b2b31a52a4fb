import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { manifestPage } from './docs/manifest-page.ts'
import { settingsPage } from './docs/settings-page.ts'

/** Writes the pages of docs/ that come from schemas. Run it after each change of one. */
const docs = path.join(import.meta.dirname, '../docs')
await writeFile(path.join(docs, 'settings.md'), settingsPage())
await writeFile(path.join(docs, 'manifest_schema.md'), manifestPage())
