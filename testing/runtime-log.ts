import type { TestModule, Vite, Vitest } from 'vitest/node'

/**
 * Lines that workerd logs for aborted objects, broken sockets and late alarms: tests cause them.
 */
const LOGGED =
  /^(?:NOSENTRY |(?:uncaught )?exception[ =;]|failed to invoke drain|stack: |workerd\/|kj\/|\[mf:error\] TypeError: Can't read from request stream)/
const KEPT = 500

/**
 * Keeps the runtime's own log lines back, and prints the last of them if the run fails. The last
 * line of a run says how it went.
 */
export function runtimeLog(): Vite.Plugin {
  return { name: 'runtime-log', configureVitest: ({ vitest }) => holdBack(vitest) }
}

/** State of the process: Vite may load this module once for each configuration. */
const HELD = Symbol.for('reflex-agents.runtime-log')

function holdBack(vitest: Vitest): void {
  if (Reflect.has(globalThis, HELD)) return
  const lines: string[] = []
  Reflect.set(globalThis, HELD, lines)
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
    const ran = vitest.state.getTestModules()
    if (ran.length > 0) process.stderr.write(`\n${verdictOf(ran, code)}\n`)
  })
}

/** For example `FAILED: 3 of 6,421 tests, in 2 of 275 files`. */
export function verdictOf(ran: readonly Pick<TestModule, 'ok' | 'children'>[], code: number): string {
  const files = ran.length === 1 ? '1 file' : `${ran.length} files`
  const tests = ran.flatMap(({ children }) => Array.from(children.allTests(), (test) => test.result().state))
  const count = (state: string): number => tests.filter((one) => one === state).length
  const [failed, skipped] = [count('failed'), count('skipped')]
  if (failed > 0) return `FAILED: ${failed} of ${tests.length} tests, in ${ran.filter((one) => !one.ok()).length} of ${files}`
  if (code !== 0) return `FAILED: no test, but the run: see the errors above (exit code ${code})`
  const passed = count('passed')
  return `PASSED: ${passed} ${passed === 1 ? 'test' : 'tests'} in ${files}${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
