import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { llmsText } from './docs/llms-text.ts'
import { logPage } from './docs/log-page.ts'
import { manifestPage } from './docs/manifest-page.ts'
import { settingsPage } from './docs/settings-page.ts'
import { pages } from '../tests/support/documented.ts'

/** Writes the pages that come from declarations, and llms.txt. Run it after each change of one. */
const docs = path.join(import.meta.dirname, '../docs')
await writeFile(path.join(docs, 'settings.md'), settingsPage())
await writeFile(path.join(docs, 'log.md'), logPage())
await writeFile(path.join(docs, 'manifest_schema.md'), manifestPage())
await writeFile(path.join(docs, '../llms.txt'), llmsText((await pages()).filter((page) => page.startsWith('docs/'))))
