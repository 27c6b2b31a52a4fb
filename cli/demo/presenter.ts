import { LiveScreen } from '../lib/live-screen.ts'
import { isTerminal, painter, type Output } from '../lib/paint.ts'
import { count, counted, duration, harmless } from '../lib/text.ts'
import { picture, type Phase } from './picture.ts'
import type { DemoState } from './state.ts'
import { decided } from './wording.ts'

/** Shows the progress. `close` leaves the output as if nothing had been drawn. */
export type Presenter = { phase: (phase: Phase) => void; state: (state: DemoState) => void; close: () => void }
type Start = { file: string; state: DemoState; started: number }

const FRAME_MS = 100
const PROGRESS_MS = 2000

/** Draws a picture on a terminal and prints lines elsewhere. */
export const presenterFor = (output: Output, start: Start): Presenter => (isTerminal(output) ? live(output, start) : plain(output, start))

function live(output: Output, { file, state: initial, started }: Start): Presenter {
  const screen = new LiveScreen(output)
  const paint = painter(output)
  let [state, phase]: [DemoState, Phase] = [initial, 'starting']
  const draw = () => {
    const { columns = 80, rows = 24 } = output
    screen.draw(picture({ state, phase, file, elapsed_ms: performance.now() - started, columns, rows, paint }))
  }
  // Drawn at a steady rate, however many entries arrive: the terminal must not slow the
  // measurement.
  const timer = setInterval(draw, FRAME_MS)
  const close = () => {
    clearInterval(timer)
    process.off('exit', close)
    screen.erase()
  }
  process.on('exit', close)
  draw()
  return { phase: (next) => (phase = next), state: (next) => (state = next), close }
}

const SAID: Record<Phase, string> = {
  starting: 'starting the real Worker on this machine; no network, state in a temporary folder',
  sending: 'the server is up; sending',
  waiting: 'all lines are sent; waiting for the last outcomes',
  finishing: 'every line has its outcome; looking for the dead letter',
}

function plain(output: Output, { file, state: initial, started }: Start): Presenter {
  const say = (text: string) => output.write(`${duration(performance.now() - started).padStart(8)}  ${text}\n`)
  let before = initial
  let said_at = 0
  say(`${harmless(file)}: ${counted(initial.lines.total, 'line')} of ${counted(Object.keys(initial.scopes).length - 1, 'host')}`)
  say(SAID.starting)
  return {
    phase: (phase) => say(SAID[phase]),
    state(state) {
      const last = state.decisions.at(-1)
      if (last && last !== before.decisions.at(-1) && last.status !== 'none')
        say(
          `${last.scope}: ${last.window === 'reflex' ? 'a reflex' : `a turn saw ${counted(last.window, 'event')} and`} ${harmless(decided(last))}`,
        )
      if (state.lines.sent > before.lines.sent && performance.now() - said_at > PROGRESS_MS) {
        said_at = performance.now()
        say(`${count(state.lines.sent)} of ${counted(state.lines.total, 'line')} sent`)
      }
      before = state
    },
    close: () => {},
  }
}
