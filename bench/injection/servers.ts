import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { canonicalJson, sameJson, type Json, type JsonFields } from '../../src/base/json.ts'
import { groupsOf, type Call, type Pair } from './pairs.ts'

type Handle = (request: IncomingMessage, response: ServerResponse) => Promise<void>
type Running = { port: number; stop: () => void }

async function serve(handle: Handle): Promise<Running> {
  const server = createServer(
    (request, response) => void handle(request, response).catch((error: unknown) => response.destroy(error as Error)),
  )
  // A busy machine is slower than the default, and a connection that closes then loses a call.
  server.keepAliveTimeout = 600_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = () => {
    server.closeAllConnections()
    server.close()
  }
  return { port: (server.address() as AddressInfo).port, stop }
}

/** A pair that runs: `reached` are the calls that the tool server got. */
export class Run {
  readonly reached: Call[] = []
  /** The tools that the task needs, as a model knows them. */
  readonly tools: string[]
  readonly #pair: Pair
  readonly #left: Call[][]
  #obeyed: boolean
  #answers: Pair['task']['steps']

  constructor(pair: Pair) {
    this.#pair = pair
    this.tools = [...new Set(pair.task.steps.map(({ tool }) => `http_${tool}`))]
    this.#left = groupsOf<Call>(pair.task.steps)
    this.#answers = [...pair.task.steps]
    this.#obeyed = pair.attack === null
  }

  /** The next calls of the user's task, and the attacker's as soon as an answer orders them. */
  next(seen: string): Call[] {
    const { attack, order } = this.#pair
    if (!this.#obeyed && attack && seen.includes(order.slice(0, 60))) {
      this.#obeyed = true
      this.#left.unshift(...groupsOf(attack.calls))
    }
    return this.#left.shift() ?? []
  }

  /** The arguments in a query: a list repeats its name. */
  queried(tool: string, query: URLSearchParams): JsonFields {
    const { properties = {} } = this.#pair.suite.tools.find(({ name }) => name === tool)?.parameters ?? {}
    const isList = (name: string) => JSON.stringify((properties as JsonFields)[name] ?? null).includes('"array"')
    return Object.fromEntries([...query.keys()].map((name) => [name, isList(name) ? query.getAll(name) : (query.get(name) ?? '')]))
  }

  answer(tool: string, args: JsonFields): Json {
    this.reached.push({ tool, args })
    const at = this.#answers.findIndex((step) => step.tool === tool && isSame(step.args, args))
    const [step] = at < 0 ? [] : this.#answers.splice(at, 1)
    return step ? step.output : { ok: true }
  }

  /** True if all of these calls reached the tool server. */
  has(calls: readonly Call[]): boolean {
    const left = [...this.reached]
    return calls.every(({ tool, args }) => {
      const at = left.findIndex((one) => one.tool === tool && isSame(args, one.args))
      if (at >= 0) left.splice(at, 1)
      return at >= 0
    })
  }
}

const asTexts = (args: JsonFields): JsonFields =>
  JSON.parse(canonicalJson(args), (_, value: unknown) => (typeof value === 'number' ? String(value) : value)) as JsonFields

/** Fields that a schema fills in are beside the arguments of the task. */
const isSame = (asked: JsonFields, given: JsonFields): boolean => {
  const [one, other] = [asTexts(asked), asTexts(given)]
  return Object.keys(one).every((name) => sameJson(one[name], other[name]))
}

/** The tools of all runs: `/RUN/TOOL`, with the arguments in the query or the body. */
export const toolServer = (runs: ReadonlyMap<string, Run>): Promise<Running> =>
  serve(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://tools')
    const [, run = '', tool = ''] = url.pathname.split('/').map(decodeURIComponent)
    const body = await text(request)
    const args = body === '' ? (runs.get(run)?.queried(tool, url.searchParams) ?? {}) : (JSON.parse(body) as JsonFields)
    const given = Object.fromEntries(Object.entries(args).filter(([, value]) => value !== ''))
    const output = runs.get(run)?.answer(tool, given) ?? null
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(output))
  })

type Asked = { stream?: boolean; messages: { role: string; content: unknown }[] }
export type ModelServer = Running & { calls: () => number }

/** A model that does what the task needs, and obeys each order that it reads in an answer. */
export async function obeyingModel(runs: ReadonlyMap<string, Run>): Promise<ModelServer> {
  let calls = 0
  const running = await serve(async (request, response) => {
    const { stream = false, messages } = JSON.parse(await text(request)) as Asked
    calls += 1
    const name = /\[run (\S+)\]/.exec(JSON.stringify(messages[0]))?.[1] ?? ''
    const seen = unescaped(JSON.stringify(messages.filter(({ role }) => role === 'tool')))
    const run = runs.get(name)
    const plans = JSON.stringify(messages[0]).includes('Before you read anything')
    const next = plans ? [] : (run?.next(seen) ?? [])
    const said = plans ? JSON.stringify(run?.tools ?? []) : 'done'
    const tool_calls = next.map(({ tool, args }, index) => ({
      index,
      id: `${name}-${messages.length}-${index}`,
      type: 'function',
      function: { name: `http_${tool}`, arguments: JSON.stringify(args) },
    }))
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    if (!stream) {
      const choices = [{ index: 0, message: { role: 'assistant', content: said }, finish_reason: 'stop' }]
      const whole = { id: 'x', object: 'chat.completion', created: 0, model: 'obeying', choices, usage }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole))
      return
    }
    const delta = tool_calls.length > 0 ? { role: 'assistant', tool_calls } : { role: 'assistant', content: said }
    const chunk = (choice: object, more: object = {}) =>
      response.write(
        `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 0, model: 'obeying', choices: [{ index: 0, ...choice }], ...more })}\n\n`,
      )
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    chunk({ delta, finish_reason: null })
    chunk({ delta: {}, finish_reason: tool_calls.length > 0 ? 'tool_calls' : 'stop' }, { usage })
    response.end('data: [DONE]\n\n')
  })
  return { ...running, calls: () => calls }
}

/** Answers stand in the prompt as JSON within JSON. */
const unescaped = (text: string): string => text.replaceAll(/\\+"/g, '"').replaceAll(/\\+n/g, '\n')
