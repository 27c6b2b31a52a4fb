import { spawn, type ChildProcess } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { vi } from 'vitest'
import { main } from '../../cli/reflex/main.ts'

export type Ran = { code: number | null; stdout: string; stderr: string }
/** `isOpen`: the input does not end. */
type Options = { env?: Record<string, string>; input?: string; isOpen?: boolean; onStart?: (child: ChildProcess) => void }

export const reflex = (args: readonly string[], options: Options = {}): Promise<Ran> => script('cli/reflex.js', args, options)

// Each command that runs here listens to signals, and to a reader of its output that goes away.
process.setMaxListeners(0)
process.stdout.setMaxListeners(0)

/** Runs a command in this process, with these variables, which takes a fraction of the time. */
export async function reflexHere(args: readonly string[], variables: Record<string, string> = {}): Promise<Ran> {
  const written = { stdout: '', stderr: '' }
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
  const names = ['stdout', 'stderr'] as const
  const spies = names.map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((chunk) => {
      written[name] += String(chunk)
      return true
    }),
  )
  process.exitCode = undefined
  try {
    const code = await main(args)
    return { code, ...written }
  } finally {
    vi.unstubAllEnvs()
    for (const spy of spies) spy.mockRestore()
    process.exitCode = undefined
  }
}

/** Runs a file as a process of its own, without the environment of the tests. */
export async function script(
  file: string,
  args: readonly string[],
  { env = {}, input = '', isOpen = false, onStart }: Options = {},
): Promise<Ran> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  onStart?.(child)
  child.stdin.write(input)
  if (!isOpen) child.stdin.end()
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { code, stdout, stderr }
}
