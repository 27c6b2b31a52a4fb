import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { SourceMap, type SourceMapPayload } from 'node:module'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

/** A stack frame in wrangler's bundle: its file, line and column. */
const FRAME = /file:\/\/\/\S+?\/\.wrangler\/tmp\/[^\s/]+\/index\.js:(\d+):(\d+)/g

type StackMapper = { url: string; close: () => void }

/** A local HTTP server that maps a stack of the bundle to the lines of the source files. */
export async function startStackMapper(project: string): Promise<StackMapper> {
  const map = stackMapper(project)
  const server = createServer((request, response) => {
    void text(request).then(
      (stack) => response.end(map(stack)),
      () => response.destroy(),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() }
}

/**
 * Only bundles below the project's `.wrangler/tmp` are read; each map is read again after it
 * changed.
 */
export function stackMapper(project: string): (stack: string) => string {
  const bundles = path.join(project, '.wrangler/tmp') + path.sep
  const known = new Map<string, { changed_at: number; map: SourceMap }>()
  const mapOf = (bundle: string): SourceMap => {
    const file = `${bundle}.map`
    const changed_at = statSync(file).mtimeMs
    const found = known.get(file)
    if (found?.changed_at === changed_at) return found.map
    const map = new SourceMap(JSON.parse(readFileSync(file, 'utf8')) as SourceMapPayload)
    known.clear()
    known.set(file, { changed_at, map })
    return map
  }
  const mapFrame = (frame: string, line: string, column: string): string => {
    const bundle = fileURLToPath(frame.slice(0, -`:${line}:${column}`.length))
    if (!bundle.startsWith(bundles)) return frame
    const entry = mapOf(bundle).findEntry(Number(line) - 1, Number(column) - 1)
    if (!('originalSource' in entry)) return frame
    const source = path.relative(project, path.resolve(path.dirname(bundle), entry.originalSource))
    return `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
  }
  return (stack) =>
    stack.replaceAll(FRAME, (frame: string, line: string, column: string) => {
      try {
        return mapFrame(frame, line, column)
      } catch {
        return frame
      }
    })
}
