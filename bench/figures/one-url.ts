import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { ReflexClient } from '../clients.ts'
import { median, type Figure, type Side } from '../figure.ts'

const WARM_UP = 10
const KEY = 'bench-admin-key'
const SCOPE = 'one-url/bench'

/** A model that answers at once, so that the rest of the time is the way to it. */
async function instantModel() {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }]
  const usage = { prompt_tokens: 20, completion_tokens: 2, total_tokens: 22 }
  const answer = JSON.stringify({ id: 'instant', object: 'chat.completion', created: 0, model: 'instant', choices, usage })
  const server = createServer((incoming, outgoing) => {
    void text(incoming).then(() => outgoing.setHeader('content-type', 'application/json').end(answer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, close: () => void server.close() }
}

/** The median time of a chat completion, in ms. */
async function timeOf(url: string, requests: number): Promise<number> {
  const times: number[] = []
  for (let index = 0; index < requests + WARM_UP; index += 1) {
    const body = JSON.stringify({ model: 'instant', messages: [{ role: 'user', content: `question ${index}` }] })
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'x-reflex-scope': SCOPE }
    const began = performance.now()
    const response = await fetch(`${url}/chat/completions`, { method: 'POST', headers, body })
    await response.text()
    if (!response.ok) throw new Error(`a request was answered ${response.status}`)
    times.push(performance.now() - began)
  }
  return median(times.slice(WARM_UP))
}

export const oneUrl: Figure = {
  name: 'one-url',
  what: "a chat completion through a scope, beside the model's own time",
  unit: 'ms',
  target: { at_most: 5, absolute: true },
  async ours(_reflex: ReflexClient, { another, count }) {
    const model = await instantModel()
    const vars = { REFLEX_MODEL: 'openai-compatible/instant', OPENAI_COMPATIBLE_BASE_URL: model.url, OPENAI_COMPATIBLE_API_KEY: 'none' }
    const { url, configure } = await another(vars)
    // Its runs would begin in the middle.
    await configure(SCOPE, { learning: { mode: 'off' } })
    return beside(model, `${url}/v1/openai`, count(300))
  },
  /** A Worker that passes the request on. */
  async bare({ bare, count }) {
    const model = await instantModel()
    return beside(model, bare.proxyTo(model.url), count(300))
  },
}

const beside = (model: Awaited<ReturnType<typeof instantModel>>, url: string, requests: number): Side => ({
  measure: async () => (await timeOf(url, requests)) - (await timeOf(model.url, requests)),
  close: async () => model.close(),
})
