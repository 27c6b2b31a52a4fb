/** Lines that wrangler repeats; they are hidden. */
const NOISE = [
  /^Your Worker has access to the following bindings:/,
  /^Binding\s+Resource\s+Mode/,
  /^env\.\w+ /,
  /^⎔ Connection status updated/,
]

/** wrangler holds requests back during a failed build, without an answer. */
const BUILD_FAILED = /\[ERROR\] Build failed/
const WAITING = 'Requests wait until the next build succeeds: mend the error and save the file.'

/**
 * Prints wrangler's output line by line, without its tables of bindings and the empty lines around
 * them.
 */
export function quieter(write: (text: string) => unknown): (text: string) => void {
  let rest = ''
  let empty = true
  return (text) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (NOISE.some((pattern) => pattern.test(line)) || (empty && line.trim() === '')) continue
      empty = line.trim() === ''
      write(`${line}\n`)
      if (BUILD_FAILED.test(line)) write(`${WAITING}\n`)
    }
  }
}
