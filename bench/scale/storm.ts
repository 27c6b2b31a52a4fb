import { ended, until } from '../clients.ts'
import { concurrently, happeningNow, loginLines } from '../load.ts'
import { line, type ScaleLine, type ScaleOptions } from './place.ts'

const SCOPES = 1000
const EVENTS = 15_000
const SENDERS = 50
/** The sweep sends again what is older. */
const LATE_S = 30

/** Lone events of many scopes, more than half a minute's work: none is sent again. */
export async function resendStorm({ open, scopes = SCOPES, events = EVENTS, progress }: ScaleOptions): Promise<ScaleLine[]> {
  const { reflex, stop } = await open('storm')
  try {
    const lines = loginLines(events, (index) => `ssh/storm-${index % scopes}`)
    const names = [...new Set(lines.map(({ scope }) => scope))]
    const start = performance.now()
    await concurrently(lines, (event) => reflex.publish(happeningNow([event])), SENDERS)
    const sent = (performance.now() - start) / 1000
    progress(`${events} events sent in ${sent.toFixed(1)} s`)
    const due = Map.groupBy(lines, ({ scope }) => scope)
    for (const scope of names.toReversed())
      await until(async () => ended(await reflex.state(scope)) >= (due.get(scope)?.length ?? 0), {
        pause_ms: 500,
        what: `the events of ${scope}`,
        timeout_ms: 1_800_000,
      })
    const drained = (performance.now() - start) / 1000
    // The next sweep.
    await new Promise((resolve) => setTimeout(resolve, LATE_S * 1000))
    let again = 0
    await concurrently(names, async (scope) => {
      again += (await reflex.state(scope)).counters.duplicates
    })
    return [
      line(`${events} lone events in ${scopes} scopes, sent in ${sent.toFixed(1)} s, until the last outcome`, drained, 's'),
      line(`the drain took more than the ${LATE_S} s after which what is lost is sent again`, drained, 's', { at_least: LATE_S }),
      line('events that were sent again for each event', again / events, '×', { at_most: 0 }),
    ]
  } finally {
    await stop()
  }
}
