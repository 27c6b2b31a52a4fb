// An agent that exists, and its second, cheaper day.
//
//   npm run example:one-url
//   npm run example:one-url -- --requests 900 --json
//
// It starts the real local server and a script that acts as the model. The agent is one of the
// AI SDK, which calls the model through Reflex: only its base URL and its key are other ones. The
// scope learns from the answers, proves what it learned in shadow mode, and then answers by itself.
// The exit code is 1 if the model was asked as often on the second day.

import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { bucketsOf, curveText, per100, type Mark } from '../../cli/learning/curve.ts'
import { learn } from '../../cli/learning/lesson.ts'
import { LiveLine } from '../../cli/learning/live-line.ts'
import { connect } from '../../cli/lib/api.ts'
import { tellFailure } from '../../cli/lib/cli-error.ts'
import { interruption, unlessAborted } from '../../cli/lib/interruption.ts'
import { startServer } from '../../cli/lib/local-server.ts'
import { painter } from '../../cli/lib/paint.ts'
import { temporaryFolder } from '../../cli/lib/temporary-folder.ts'
import { sorted } from './agent.ts'
import { alertsOf, scriptedModel } from './model.ts'

const SCOPE = 'key/admin'
const { signal, exitCode } = interruption()
const { requests: given, json } = parseArgs({
  options: { requests: { type: 'string', default: '900' }, json: { type: 'boolean', default: false } },
}).values
const alerts = alertsOf(Number(given))

async function main(): Promise<number> {
  const folder = temporaryFolder('reflex-one-url-')
  const apiKey = `one-url-${randomUUID()}`
  const model = await scriptedModel()
  const line = new LiveLine(process.stderr)
  line.show('starting the real Worker on this machine; no network, state in a temporary folder')
  const starting = startServer({ persist_to: folder.path, vars: { REFLEX_ADMIN_KEY: apiKey, ...model.vars }, signal })
  try {
    const server = await unlessAborted(signal, starting)
    const api = connect(server.url, apiKey)
    const learning = { mode: 'auto', min_agreement: 0.95, trusted_sources: ['key:admin'] }
    await api.json(`/v1/scopes/${encodeURIComponent(SCOPE)}`, { method: 'PATCH', body: { learning }, signal })
    const calls: number[] = []
    const marks: Mark[] = []
    let decided_by: string | undefined
    for (const [index, alert] of alerts.entries()) {
      const before = model.asked()
      const { headers } = await unlessAborted(signal, sorted(alert, { baseURL: `${server.url}/v1/openai`, apiKey }))
      decided_by = headers['x-reflex-decided-by']
      calls.push(model.asked() - before)
      line.show(`${index + 1} of ${alerts.length} alerts sorted`)
      if (index + 1 !== Math.floor(alerts.length / 3)) continue
      const { answer } = await learn(api, { scope: SCOPE }, signal)
      marks.push({ after: index + 1, text: answer })
    }
    line.close()
    const buckets = bucketsOf(calls, 100)
    const figures = { calls_per_100: buckets.map(per100), asked: model.asked(), of: alerts.length, decided_by, learned: marks }
    const title = 'Model calls per 100 requests of the agent'
    if (json) console.log(JSON.stringify(figures))
    else console.log(curveText({ title, buckets, marks }, { columns: 80, paint: painter(process.stdout) }).join('\n'))
    return (figures.calls_per_100.at(-1) ?? 100) < 50 ? 0 : 1
  } finally {
    line.close()
    await (await starting.catch(() => null))?.stop()
    model.stop()
    folder.remove()
  }
}

try {
  process.exitCode = await main()
} catch (error) {
  process.exitCode = signal.aborted ? exitCode() : tellFailure('The example failed:', error)
}
// Connections that the server was killed under may keep a handle for a while.
process.exit()
