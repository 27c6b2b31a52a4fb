import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder that is gone when this process is, however it ends (SIGKILL excepted). */
export function temporaryFolder(prefix: string): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), prefix))
  // A process that was killed a moment ago may still be writing its last file.
  const remove = () => rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
  process.once('exit', remove)
  return { path, remove }
}
