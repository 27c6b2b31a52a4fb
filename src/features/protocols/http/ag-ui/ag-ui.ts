import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { approvalEdits } from '../../../../contract/approval.ts'
import type { LogEntry } from '../../../../contract/log-entry.ts'
import { operations, texts } from '../../../../contract/operation.ts'
import { scopePath } from '../../../../contract/operations/shared.ts'
import { hasRole } from '../../../../contract/principal.ts'
import { fromZod, Problem } from '../../../../contract/problem.ts'
import type { AnswerPart, LogRead } from '../../../../contract/scope-api.ts'
import type { Env } from '../../../../env.ts'
import { demandReader, demandRole, type AuthEnv } from '../../../../http/auth/middleware.ts'
import { eventRules, readEvent } from '../../../../http/body/body.ts'
import { resource, serve } from '../../../../http/describe/operation.ts'
import { inboxFull, invalid, notFound } from '../../../../http/problems/refusals.ts'
import { decide } from '../../../approvals/http/approvals.ts'
import { CLARIFY, RunEvents, type AgUiRun } from './ag-ui-events.ts'
import type { UiEvent } from './ag-ui-texts.ts'
import { connect } from '../../../../http/scopes/sockets.ts'
import { blocksOf } from '../../../../http/scopes/sse-blocks.ts'

const id = z
  .string()
  .min(1)
  .max(100)
  .refine((text) => !/\p{Cc}/u.test(text), 'must not contain control characters')
/** The content of an activity is an object, and a message may have none. */
const message = z.looseObject({ id: z.string(), role: z.string(), content: z.unknown().optional() })
const resume = z.looseObject({
  interruptId: z.string().min(1).max(200),
  status: z.enum(['resolved', 'cancelled']),
  payload: z.unknown().optional(),
})
/** A turn proposes fewer skills. */
const MOST_ANSWERS = 32
/** Fields of later versions, and those that a scope has no use for, are ignored. */
const runInput = z.looseObject({
  threadId: id,
  runId: id.describe('Identifies the run: a repetition gets the same events, and starts no second turn.'),
  parentRunId: id.optional(),
  messages: z.array(message).default([]).describe('The last one, of the user, becomes an event; the scope remembers the others.'),
  resume: z
    .array(resume)
    .max(MOST_ANSWERS)
    .optional()
    .describe('The answers to the interrupts of the previous run; no message becomes an event then.'),
})
type RunInput = z.infer<typeof runInput>

const run = operations({ tag: 'Scopes', roles: ['publisher'], scoped: true })(
  'post /v1/scopes/{scope}/ag-ui',
  'runAgUi',
  'Run the agent by AG-UI',
  {
    description:
      'Takes a RunAgentInput of AG-UI 1.0 and responds with its events as a stream, which is a projection of the log from the receipt of the message on; text arrives as the model makes it. ' +
      'Approvals and questions of skills end a run as interrupts; `resume` of the next run answers them. Tool calls and state are for keys with the role viewer; approvals need the role operator. See docs/ag-ui.md.',
    params: scopePath,
    body: runInput,
    example: { threadId: 'alice', runId: 'run-1', messages: [{ id: 'm-1', role: 'user', content: 'hello' }] },
    answers: { 200: [null, 'The events of the run.', texts.events] },
    problems: [404, 409, 503],
  },
)

export const agUiRoutes = resource().openapiRoutes([
  serve(run, async (c, { body: input }) => {
    const { scope, principal } = c.var
    const { run, after, trace_id } = await begun(c, input)
    const events = new RunEvents(run, { shows_work: hasRole(principal, 'viewer') })
    const begins = events.start().map(line)
    if (events.ended) return new Response(begins.join(''), { headers })
    const key = { connection_id: principal.name, key_id: principal.key_id, source: principal.name }
    const log = await connect(c.env, scope, { ...key, may_send: false, decides_as: null, after, parts: true })
    return new Response(streamOf(log, { begins, events, isOwn: ownOf(run, trace_id) }), { headers })
  }),
])

/** `trace_id`: of the event that the run waits for. */
type Begun = { run: AgUiRun; after: number; trace_id: string | null }
type SentMessage = { event_id: string; after: number; trace_id: string }
type ResumeEntry = z.infer<typeof resume>
type AgUiContext = Context<AuthEnv>

/** Sends the message, or answers the interrupts. All is checked before anything is done. */
async function begun(c: AgUiContext, input: RunInput): Promise<Begun> {
  const { threadId, runId, parentRunId, messages, resume: answers = [] } = input
  const of = { threadId, runId, parentRunId }
  if (answers.length === 0) {
    const content = textOf(messages.findLast(({ role }) => role === 'user')?.content)
    if (content === null) throw invalid('A run needs a message of the user with text, or an answer to an interrupt.')
    const { event_id, ...rest } = await sent(c, input, content)
    return { run: { ...of, event_id, approval_ids: [] }, ...rest }
  }
  const decisions = answers.filter(({ interruptId }) => !interruptId.startsWith(CLARIFY))
  const asked = await askedFor(c, decisions)
  const said = await saidTo(
    c,
    answers.filter((answer) => !decisions.includes(answer)),
  )
  for (const answer of decisions) await decided(c, answer)
  const message = said === null ? null : await sent(c, input, said)
  const after = Math.min(...asked.map(({ seq }) => seq), message?.after ?? Infinity)
  const run = { ...of, event_id: message?.event_id ?? null, approval_ids: decisions.map(({ interruptId }) => interruptId) }
  return { run, after, trace_id: message?.trace_id ?? null }
}

/** Sends a text as an event. A repeated run has the same event id, which is a duplicate. */
async function sent(c: AgUiContext, { threadId, runId }: RunInput, content: string): Promise<SentMessage> {
  const { scope } = c.var
  const event_id = `ag-ui:${runId}`
  const event = readEvent({ type: 'ws.message', id: event_id, connection_id: threadId, content }, { ...eventRules(c, scope), heard: true })
  const stub = c.env.SCOPE.getByName(scope)
  const { last_seq } = await stub.readLog(0, 1)
  const accepted = await stub.accept([event], 'http')
  if (!accepted.ok) throw inboxFull(scope, accepted)
  const [receipt] = accepted.receipts
  const trace_id = receipt?.trace_id ?? event.meta.trace_id
  if (receipt?.status !== 'duplicate') return { event_id, after: last_seq, trace_id }
  const first = await stub.event(event_id)
  if (first) demandReader(c.var.principal, first.event)
  const entry = await entryIn(c.env, scope, 'event-accepted', ({ event_ids }) => event_ids.includes(event_id))
  if (!entry) throw notFound(`The run ${runId} is too old: retention has deleted its log.`)
  return { event_id, after: entry.seq - 1, trace_id }
}

/** The entries that asked for the approvals, in this scope. */
async function askedFor({ env, var: { scope, principal } }: AgUiContext, decisions: readonly ResumeEntry[]): Promise<LogEntry[]> {
  if (decisions.length > 0) demandRole(principal, 'operator')
  const asked = []
  for (const answer of decisions) {
    asked.push(await interruptIn(env, scope, 'approval-requested', 'approval_id', answer.interruptId))
    if (isApproval(answer)) editsIn(answer.payload)
  }
  return asked
}

/** The answers to questions as one text; null if all were left. */
async function saidTo({ env, var: { scope } }: AgUiContext, answers: readonly ResumeEntry[]): Promise<string | null> {
  const texts = []
  for (const { interruptId, status, payload } of answers) {
    await interruptIn(env, scope, 'skill-decided', 'proposal_id', interruptId.slice(CLARIFY.length))
    const text = textOf(payload)
    if (status === 'resolved' && text === null) throw invalid(`The answer to ${interruptId} is a text: give it as the payload.`)
    if (status === 'resolved') texts.push(text)
  }
  return texts.length === 0 ? null : texts.join('\n')
}

const isApproval = ({ status, payload }: ResumeEntry): boolean =>
  status === 'resolved' && (payload === true || fieldOf(payload, 'approved') === true)

async function decided({ env, var: { principal } }: AgUiContext, answer: ResumeEntry): Promise<void> {
  const { interruptId: id, payload } = answer
  const approves = isApproval(answer)
  const why = fieldOf(payload, 'reason')
  const decision = {
    id,
    status: approves ? ('approved' as const) : ('rejected' as const),
    reason: typeof why === 'string' && why !== '' ? why.slice(0, 1000) : null,
    edits: approves ? editsIn(payload) : undefined,
    traceparent: undefined,
  }
  await decide(env, principal, decision).catch((error: unknown) => {
    // A repetition of the run, or somebody was faster: the log has the decision.
    if (!(error instanceof Problem) || !error.type.endsWith(':already-decided')) throw error
  })
}

/** The run before has shown what came until a decision: this one shows what follows it. */
function ownOf({ event_id, approval_ids }: AgUiRun, trace_id: string | null): (entry: LogEntry) => boolean {
  const traces = new Set(trace_id === null ? [] : [trace_id])
  return (entry) => {
    if (entry.kind === 'approval-decided' && approval_ids.includes(String(fieldOf(entry, 'approval_id')))) traces.add(entry.trace_id)
    return traces.has(entry.trace_id) || (event_id !== null && entry.event_ids.includes(event_id))
  }
}

function editsIn(payload: unknown): Record<string, unknown> | undefined {
  const given = fieldOf(payload, 'edits')
  if (given === undefined) return undefined
  const parsed = approvalEdits.safeParse(given)
  if (!parsed.success) throw invalid('The edits of an answer are inputs by their names.', fromZod(parsed.error))
  return parsed.data
}

/** The entry that asked for it. */
async function interruptIn(env: Env, scope: string, kind: LogEntry['kind'], name: string, id: string): Promise<LogEntry> {
  const found = await entryIn(env, scope, kind, (entry) => fieldOf(entry, name) === id)
  if (found) return found
  throw notFound(`The scope ${scope} has no interrupt ${kind === 'skill-decided' ? CLARIFY : ''}${id}.`)
}

/** The first entry of the kind that matches. */
async function entryIn(env: Env, scope: string, kind: LogEntry['kind'], matches: (entry: LogEntry) => boolean): Promise<LogEntry | null> {
  for (let after: number | null = 0; after !== null;) {
    const page: LogRead = await env.SCOPE.getByName(scope).readLog(after, PAGE, undefined, { kinds: [kind] })
    const found = page.entries.map((text) => JSON.parse(text) as LogEntry).find(matches)
    if (found) return found
    after = page.next
  }
  return null
}

type RunStream = { begins: readonly string[]; events: RunEvents; isOwn: (entry: LogEntry) => boolean }

/** The events as server-sent events, until the run ends or the client leaves. */
function streamOf(log: Response, { begins, events, isOwn }: RunStream): ReadableStream<Uint8Array> {
  const stop = new AbortController()
  const lines = async function* () {
    yield* begins
    for await (const block of blocksOf(log, stop.signal)) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/m.exec(block) ?? []
      if (data === undefined) yield ': the run continues\n\n'
      else if (name === 'part') for (const event of events.part(JSON.parse(data) as AnswerPart)) yield line(event)
      else {
        const entry = JSON.parse(data) as LogEntry
        if (isOwn(entry)) for (const event of events.of(entry)) yield line(event)
      }
      if (events.ended) return
    }
  }
  const made = lines()
  const encoder = new TextEncoder()
  return new ReadableStream({
    pull: async (controller) => {
      const { done, value } = await made.next()
      if (done === true) {
        controller.close()
        stop.abort()
      } else controller.enqueue(encoder.encode(value))
    },
    cancel: () => stop.abort(),
  })
}

const PAGE = 1000
const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' }
const line = (event: UiEvent): string => `data: ${JSON.stringify(event)}\n\n`
const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined

/** The text of a message or of an answer; null without text. */
function textOf(content: unknown): string | null {
  if (typeof content === 'string') return content.trim() === '' ? null : content
  if (!Array.isArray(content)) return null
  const texts = content.flatMap((one: unknown) => (fieldOf(one, 'type') === 'text' ? [String(fieldOf(one, 'text'))] : []))
  return texts.length === 0 ? null : texts.join('\n')
}
