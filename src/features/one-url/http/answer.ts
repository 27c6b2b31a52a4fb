import { hexHash } from '../../../base/hash.ts'
import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import { v7 as uuidv7 } from 'uuid'
import { Problem } from '../../../contract/problem.ts'
import { coversScope, senderRole } from '../../../contract/principal.ts'
import { escapedName } from '../../../contract/scope.ts'
import { MODEL_ASKED } from '../../../contract/model-asked.ts'
import { newTraceId, scopeName } from '../../../core/event.ts'
import { senderOfKey } from '../../../contract/sender.ts'
import { traceContextOf } from '../../../events/traceparent.ts'
import { LineReader } from '../../../base/json-lines.ts'
import { warn } from '../../../base/warn.ts'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import { check, readBody } from '../../../http/body/body.ts'
import { forbidden, invalid, refuseInvalid, refusal, unavailable } from '../../../http/problems/refusals.ts'
import type { AnswerError, AnswerLine, AskedOfScope } from '../contract/answer.ts'
import { mayPass, unrecorded } from './unrecorded.ts'
import { factsOf, newestResults, traceOf, wordsOf } from './facts.ts'
import { NotServed, type ParsedRequest, type ProviderForm, type WholeAnswer } from './form.ts'

const BODY = { most: 4 * 1024 * 1024, advice: 'Send fewer or shorter messages.', is_gzip: false }

/** Reads a body before the framework does, which knows no limit. A conversation may be long. */
export const conversation = createMiddleware<AuthEnv>(async (c, next) => {
  const text = await readBody(c.req.raw, BODY)
  check(c.req.header('Content-Type'), text)
  const cache: { text?: unknown } = c.req.bodyCache
  cache.text = Promise.resolve(text)
  await next()
})

/** Answers a request in the form of its provider: as a whole, or as a stream. */
export async function answer<Body>(c: Context<AuthEnv>, form: ProviderForm<Body>): Promise<Response> {
  const body = await bodyOf(c, form)
  const parsed = parsedBy(form, body)
  const scope = scopeOf(c, parsed)
  const asked = askedOf(c, form, { parsed, scope })
  const { head, first, lines } = await begun(c, scope, asked)
  if (head.line === 'error') throw problemOf(head)
  if (head.line !== 'head') throw unavailable('The scope gave no answer.')
  const headers = {
    ...(head.trace_id === null ? { 'x-reflex-unrecorded': 'true' } : { 'x-reflex-trace': head.trace_id }),
    'x-reflex-scope': scope,
    ...(head.decided_by !== null && { 'x-reflex-decided-by': head.decided_by }),
  }
  const of = { id: uuidv7().replaceAll('-', ''), model: head.model, at: Math.floor(Date.now() / 1000) }
  // An error before anything is said has its own status.
  if (first.line === 'error') throw withHeaders(problemOf(first), headers)
  if (parsed.streams) return new Response(streamOf(form.writer(of, body), first, lines), { headers: { ...headers, ...EVENT_STREAM } })
  const whole = await wholeOf(of, first, lines)
  return c.json(form.whole(whole, body), 200, headers)
}

const EVENT_STREAM = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' }

async function bodyOf<Body>(c: Context<AuthEnv>, { body }: ProviderForm<Body>): Promise<Body> {
  return refuseInvalid({ target: 'json', ...body.safeParse(await c.req.json()) })
}

function parsedBy<Body>({ parse }: ProviderForm<Body>, body: Body): ParsedRequest {
  try {
    return parse(body)
  } catch (error) {
    if (error instanceof NotServed) throw invalid(error.message)
    throw error
  }
}

/** The header, else the user, else the key. */
export function scopeOf(c: Context<AuthEnv>, { user }: Pick<ParsedRequest, 'user'>): string {
  const { principal } = c.var
  const named = c.req.header('x-reflex-scope')
  const scope = named ?? (user === undefined ? `key/${partOf(principal.name)}` : `user/${partOf(user)}`)
  if (!scopeName.safeParse(scope).success)
    throw refusal('invalid-scope', 'The scope is not valid: it has 1 to 128 characters of A-Z a-z 0-9 . _ : @ - and /.')
  if (!coversScope(principal, scope))
    throw forbidden(
      `The key ${principal.name} does not cover the scope ${scope}.${named === undefined ? ' Name one that it covers in the header x-reflex-scope.' : ''}`,
    )
  return scope
}

/** A part of a scope's name is no longer. */
const MOST_PART = 100

/**
 * A name as a part of a scope, each name as one of its own. A plain one stays, unless it could be
 * taken for an escaped one. A long one is cut, and a hash tells it apart.
 */
function partOf(name: string): string {
  const escaped = /^[\w.:@-]+$/.test(name) && !/:[\dA-F]{2}/.test(name) ? name : escapedName(name)
  return escaped.length <= MOST_PART ? escaped : `${escaped.slice(0, MOST_PART - 33)}/${hexHash(name).slice(0, 32)}`
}

type Asking = { parsed: ParsedRequest; scope: string }

function askedOf<Body>(c: Context<AuthEnv>, { api }: ProviderForm<Body>, { parsed, scope }: Asking): AskedOfScope {
  const { principal } = c.var
  const { request, model, streams } = parsed
  const given = traceContextOf(c.req.header('traceparent'), c.req.header('tracestate'))
  const continued = traceOf(request)
  const place = continued === null ? (given ?? { trace_id: newTraceId() }) : { trace_id: continued }
  const role = senderRole(principal)
  const known = { sender: senderOfKey(principal.key_id), ...(role && { role }), heard: true as const }
  const meta = { correlation_id: null, causation_id: null, ...place, ...known }
  const key = callersKey(c)
  return {
    event: {
      type: MODEL_ASKED,
      id: uuidv7(),
      scope,
      source: principal.name,
      timestamp: new Date().toISOString(),
      meta,
      api,
      model,
      ...factsOf(request),
    },
    request,
    streams,
    words: wordsOf(request.prompt),
    results: continued === null ? [] : newestResults(request),
    ...(key !== undefined && { behind: { name: `openai-compatible/${model}`, key } }),
  }
}

/** The caller's own key of a provider, where the deployment passes such keys on. */
export function callersKey(c: Context<AuthEnv>): string | undefined {
  const key = c.req.header('x-reflex-provider-key')
  if (key !== undefined && c.env.REFLEX_PROVIDER_KEYS !== 'pass')
    throw forbidden('This deployment passes no keys of providers on: it sets REFLEX_PROVIDER_KEYS to "pass" to do so.')
  return key
}

type Begun = { head: AnswerLine; first: AnswerLine; lines: AnswerReader }

/** Until something is said, an answer without a record can take the place of one that broke. */
async function begun(c: Context<AuthEnv>, scope: string, asked: AskedOfScope): Promise<Begun> {
  try {
    return await beginningOf(await c.env.SCOPE.getByName(scope).answerModel(JSON.stringify(asked)))
  } catch (error) {
    if (!mayPass(c.env, asked)) throw error
    warn({ message: 'a request to a model was answered without a record', scope, error })
    return beginningOf(unrecorded(c.env, asked))
  }
}

async function beginningOf(answer: ReadableStream<Uint8Array> | string): Promise<Begun> {
  const lines = new AnswerReader(answer)
  const head = await lines.said()
  const first = head?.line === 'error' ? head : await lines.said()
  if (!head || !first) throw unavailable('The scope broke off the answer.')
  return { head, first, lines }
}

/** The lines of an answer. A stream that ends without its last line has broken off. */
class AnswerReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | null
  readonly #read = new LineReader()
  #lines: string[]

  constructor(answer: ReadableStream<Uint8Array> | string) {
    this.#reader = typeof answer === 'string' ? null : answer.getReader()
    this.#lines = typeof answer === 'string' ? answer.trimEnd().split('\n') : []
  }

  /** Undefined after the last line. */
  async next(): Promise<AnswerLine | undefined> {
    while (this.#lines.length === 0) {
      const next = await this.#reader?.read()
      if (!next || next.done) return undefined
      this.#lines = this.#read.read(next.value)
    }
    return JSON.parse(this.#lines.shift() ?? '') as AnswerLine
  }

  /** The next line that says something. */
  async said(): Promise<AnswerLine | undefined> {
    const line = await this.next()
    return line?.line === 'beat' ? this.said() : line
  }

  /** Also while a line is awaited: the scope stops the model. */
  async cancel(): Promise<void> {
    await this.#reader?.cancel().catch(() => undefined)
  }
}

async function wholeOf(of: Pick<WholeAnswer, 'id' | 'model' | 'at'>, first: AnswerLine, rest: AnswerReader): Promise<WholeAnswer> {
  const whole = { ...of, text: '', calls: [] as { id: string; name: string; input: string }[] }
  for (let line: AnswerLine | undefined = first; line; line = await rest.next()) {
    if (line.line === 'text') whole.text += line.text
    if (line.line === 'call') whole.calls.push({ id: line.id, name: line.name, input: line.input })
    if (line.line === 'error') throw problemOf(line)
    if (line.line === 'end') return { ...whole, ...line }
  }
  throw unavailable('The scope broke off the answer.')
}

const BROKEN = { status: 502, message: 'The scope broke off the answer: its trace says how far it came.' }

/** A comment of an event stream, which clients skip. */
const BEAT = ': \n\n'

function streamOf(writer: ReturnType<ProviderForm['writer']>, first: AnswerLine, rest: AnswerReader): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let line: AnswerLine | undefined = first
  return new ReadableStream({
    async pull(controller) {
      const now = line
      if (!now || now.line === 'error') {
        controller.enqueue(encoder.encode(writer.failed(now ? failureOf(now) : BROKEN)))
        return controller.close()
      }
      const texts = now.line === 'beat' || now.line === 'head' ? [BEAT] : writer.write(now)
      for (const text of texts) controller.enqueue(encoder.encode(text))
      if (now.line === 'end') return controller.close()
      line = await rest.next().catch(() => undefined)
    },
    cancel: () => rest.cancel(),
  })
}

const failureOf = ({ status, message, reason }: AnswerError) => ({ status, message, is_budget: reason === 'refused' && status === 429 })

/** The status of a provider is passed on. */
function problemOf(error: AnswerError): Problem {
  const { status, message: detail, reason, retry_after_s, is_final } = error
  const kind = failureOf(error).is_budget ? 'budget-spent' : reason === 'model' ? 'model-failed' : 'not-answered'
  const headers = {
    ...(retry_after_s !== null && { 'Retry-After': String(retry_after_s) }),
    // Clients of both providers heed it, and repeat each answer above 499 without it.
    ...(is_final && { 'x-should-retry': 'false' }),
  }
  return new Problem({ status, type: `urn:reflex:problem:${kind}`, title: 'Not answered', detail, headers })
}

function withHeaders({ status, type, title, detail, headers }: Problem, more: Record<string, string>): Problem {
  return new Problem({ status, type, title, detail, headers: { ...headers, ...more } })
}
