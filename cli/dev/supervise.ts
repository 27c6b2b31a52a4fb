import { messageOf } from '../lib/cli-error.ts'
import type { FileChange } from './watch.ts'

type SupervisedProcess = { ended: Promise<void>; stop: () => Promise<void> }
type Ports = {
  /** Resolves when the server answers; rejects if it does not start. */
  start: () => Promise<SupervisedProcess>
  changed: (kind?: FileChange['kind']) => Promise<FileChange>
  tell: (text: string) => void
  now: () => number
}

/** After more crashes than this within a minute the server waits for a change. */
const MOST_CRASHES = 5
const MINUTE_MS = 60_000

/**
 * Keeps the server running until `start` aborts: restarts it after a crash and after a change of a
 * file that it reads only at start. Rejects if the first start fails.
 */
export async function supervise({ start, changed, tell, now }: Ports): Promise<never> {
  // From before the start on: a save while the server starts comes too late for it.
  let edited = changed('settings')
  let running = await start()
  let crashes: number[] = []
  for (;;) {
    const change = await Promise.race([edited, running.ended.then(() => null)])
    if (change) {
      tell(`${change.path} changed: the server restarts.`)
      await running.stop()
    } else {
      await running.stop()
      crashes = [...crashes.filter((at) => now() - at < MINUTE_MS), now()]
      if (crashes.length > MOST_CRASHES) await untilChanged(changed, tell)
      else tell('The dev server crashed; see the error above. It starts again.')
    }
    running = await startAgain({
      start() {
        edited = changed('settings')
        return start()
      },
      changed,
      tell,
    })
  }
}

async function startAgain({ start, changed, tell }: Pick<Ports, 'start' | 'changed' | 'tell'>): Promise<SupervisedProcess> {
  for (;;) {
    // A file may change while the server tries to start, which is a reason to retry.
    const change = changed()
    try {
      return await start()
    } catch (error) {
      tell(messageOf(error))
      tell('The server did not start. Save a file to try again.')
      tell(`${(await change).path} changed: the server starts.`)
    }
  }
}

async function untilChanged(changed: Ports['changed'], tell: Ports['tell']): Promise<void> {
  const times = `${MOST_CRASHES + 1} times within a minute`
  tell(`The dev server crashed ${times}; see the errors above. Save a file to start it again.`)
  await changed()
}
