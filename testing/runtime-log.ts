import type { Vite } from 'vitest/node'

/**
 * Lines that workerd logs for aborted objects, broken sockets and late alarms: tests cause them.
 */
const LOGGED = /^(?:NOSENTRY |(?:uncaught )?exception[ =;]|failed to invoke drain|stack: |workerd\/|kj\/)/
const KEPT = 500

/** Keeps the runtime's own log lines back, and prints the last of them if the run fails. */
export function runtimeLog(): Vite.Plugin {
  return { name: 'runtime-log', configureVitest: holdBack }
}

let held: string[] | null = null

function holdBack(): void {
  if (held) return
  const lines: string[] = (held = [])
  for (const stream of [process.stdout, process.stderr]) {
    const write = stream.write.bind(stream) as (...given: unknown[]) => boolean
    stream.write = (...given: unknown[]) => {
      const [text] = given
      if (typeof text !== 'string' || !LOGGED.test(text)) return write(...given)
      lines.push(text)
      if (lines.length > KEPT) lines.shift()
      return true
    }
  }
  process.once('exit', (code) => {
    if (code !== 0 && lines.length > 0) process.stderr.write(`\nThe last lines that the Workers runtime logged:\n${lines.join('')}`)
  })
}
