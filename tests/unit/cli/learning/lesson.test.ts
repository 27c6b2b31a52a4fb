import { afterEach, expect, test } from 'vitest'
import { connect } from '../../../../cli/lib/api.ts'
import { listen } from '../../../../cli/lib/listen.ts'
import { teach } from '../../../../cli/learning/lesson.ts'
import { accepted, endedByReflex, entry, modelCalled } from '../log-entries.ts'

const closing: (() => void)[] = []
afterEach(() => closing.splice(0).forEach((close) => close()))

/** A server with this log, whose pages have two entries, and the requests that it got. */
async function serverWith(log: readonly { seq: number }[]) {
  const requests: string[] = []
  const answer = (url: URL): Record<string, unknown> => {
    if (url.pathname === '/v1/learn') return { run_id: 'r' }
    if (url.pathname.startsWith('/v1/learn/runs/')) return { run_id: 'r', status: 'done' }
    if (!url.pathname.endsWith('/log')) return { last_seq: log.at(-1)?.seq }
    const items = log.filter(({ seq }) => seq > Number(url.searchParams.get('after'))).slice(0, 2)
    return { items, next_cursor: items.at(-1) === log.at(-1) ? null : String(items.at(-1)?.seq) }
  }
  const { host, stop } = await listen(({ method, url: path }) => {
    const url = new URL(path, 'http://local')
    requests.push(`${method} ${url.pathname}`)
    return { status: 200, body: answer(url) }
  })
  closing.push(stop)
  return { api: connect(`http://${host}`, 'key'), requests }
}

test('each event waits for the outcome of the one before, and the whole log says what each cost', async () => {
  const of = (id: string) => ({ ...modelCalled(), event_ids: [id] })
  const moved = entry({ kind: 'reflex-moved', reflex_id: 'r', to: 'active', reason: 'proved' } as Parameters<typeof entry>[0])
  const log = [accepted(), of('a'), of('a'), accepted(), moved, of('x'), accepted(), endedByReflex()].map((one, index) => ({
    ...one,
    seq: index + 1,
  }))
  const { api, requests } = await serverWith(log)
  const lesson = { scope: 's', settings: {}, events: [{ id: 'a' }, { id: 'b' }, { id: 'c' }], learn_after: [2] }
  const progress: string[] = []
  const taught = await teach(api, lesson, {
    signal: new AbortController().signal,
    onProgress: ({ sent, of: all, doing }) => progress.push(`${doing} ${sent}/${all}`),
  })
  expect(taught).toEqual({
    calls: [2, 0, 0],
    by_reflex: 1,
    marks: [{ after: 2, text: 'r is active: proved' }],
    runs: [{ run_id: 'r', status: 'done' }],
  })
  expect(progress).toEqual(['sending 1/3', 'sending 2/3', 'learning 2/3', 'sending 3/3'])
  const event = 'POST /v1/scopes/s/events'
  expect(requests.slice(0, 6)).toEqual(['PATCH /v1/scopes/s', event, event, 'POST /v1/learn', 'GET /v1/learn/runs/r', event])
})
