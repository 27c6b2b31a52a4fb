import type { ReflexConfig } from '../config.ts'
import { createReflex as create, type Reflex } from '../reflex.ts'
import { fileStorage } from './file-storage.ts'

export { fileStorage } from './file-storage.ts'

/** As in `reflex/wrap`, with `storage: {file}` beside: skills, runs, outputs and the log are kept in that SQLite file. */
export function createReflex({
  storage = 'memory',
  ...config
}: Omit<ReflexConfig, 'storage'> & { storage?: ReflexConfig['storage'] | { file: string } }): Reflex {
  return create({ ...config, storage: typeof storage === 'object' && 'file' in storage ? fileStorage(storage.file) : storage })
}
