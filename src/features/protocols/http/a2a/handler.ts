import { demandWhole } from '../../../../store/packs/missing.ts'
import {
  type AgentCard,
  type ListTasksRequest,
  type ListTasksResponse,
  type Message,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
  TaskState,
  type Artifact,
  type Part,
  Role,
} from '@a2a-js/sdk'
import {
  A2AError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
  ContentTypeNotSupportedError,
} from '@a2a-js/sdk/errors'
import type { A2ARequestHandler } from '@a2a-js/sdk/server'
import { z } from 'zod'
import { limits } from '../../../../base/limits.ts'
import { fromZod } from '../../../../contract/problem.ts'
import { approvedFor } from '../../../../contract/approval.ts'
import { eventStatuses, type EventRecord, type EventStatus } from '../../../../contract/event-record.ts'
import type { Manifest } from '../../../../skills/manifest/manifest.ts'
import { findApproval } from '../../../approvals/store/approvals.ts'
import { listEvents } from '../../../../store/events.ts'
import { storeOf } from '../../../../store/store.ts'
import { traceContextOf } from '../../../../events/traceparent.ts'
import { demandReader, demandRole, isKeyEnded, type Caller } from '../../../../http/auth/middleware.ts'
import { eventRules } from '../../../../http/body/body.ts'
import { inboxFull } from '../../../../http/problems/refusals.ts'
import { decide } from '../../../approvals/http/approvals.ts'
import { agentCard, agentSkill } from './card.ts'
import type { Clean } from '../../../../base/secrets.ts'
import { isJsonFields } from '../../../../base/json.ts'
import type { Event } from '../../../../core/event.ts'
import { parseEvent, type EventRules } from '../../../../events/parse-event.ts'
import type { ScopeApi } from '../../../../contract/scope-api.ts'
import { messageRun, type MessageRun } from '../../../../traces/message-run.ts'
import { traceRecording } from '../../../../traces/recording-lines.ts'

/** The parts of a task in its scope: its event, the newest event that answered it, and its run. */
type TaskFacts = { task: Event; latest: EventRecord; run: MessageRun }

/** The facts of one event; null if the scope does not have it. */
async function factsOf(scope: Pick<ScopeApi, 'event' | 'recording'>, id: string): Promise<TaskFacts | null> {
  const own = await scope.event(id)
  if (!own) return null
  const { trace_id } = own.event.meta
  const recording = await traceRecording(scope, { trace_id, contexts: false })
  const answers = recording?.events.filter(({ event }) => event.meta.correlation_id === id && event.source === own.event.source) ?? []
  const last = answers.toSorted((one, other) => one.seq - other.seq).at(-1)
  const latest = last ? await scope.event(last.event.id) : own
  return { task: own.event, latest: latest ?? own, run: messageRun(recording?.entries ?? []) }
}

const states: Record<EventStatus, TaskState> = {
  queued: TaskState.TASK_STATE_SUBMITTED,
  pending: TaskState.TASK_STATE_SUBMITTED,
  processing: TaskState.TASK_STATE_WORKING,
  completed: TaskState.TASK_STATE_COMPLETED,
  ignored: TaskState.TASK_STATE_COMPLETED,
  dead_lettered: TaskState.TASK_STATE_FAILED,
  cancelled: TaskState.TASK_STATE_CANCELED,
}

const ENDED: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_REJECTED,
])
const isEnded = ({ status }: Task): boolean => status !== undefined && ENDED.has(status.state)
const isWaiting = ({ status }: Task): boolean => status?.state === TaskState.TASK_STATE_INPUT_REQUIRED

/** A task as a view of an event, of what decided it, and of the log of its trace. */
function taskOf({ task, latest, run }: TaskFacts): Task {
  const { state, text, at } = stateOf(latest, run)
  const ids = { taskId: task.id, contextId: task.scope }
  const message = text === null ? undefined : agentMessage(`${task.id}:status`, text, ids)
  return {
    id: task.id,
    contextId: task.scope,
    status: { state, message, timestamp: at },
    artifacts: artifactsOf(latest, run),
    history: [],
    metadata: { 'reflex/trace_id': task.meta.trace_id, 'reflex/event_type': task.type },
  }
}

type StatedTask = { state: TaskState; text: string | null; at: string }

function stateOf({ status, error, outcome, waiting, accepted_at, ended_at }: EventRecord, run: MessageRun): StatedTask {
  const at = ended_at ?? accepted_at
  const own = states[status]
  if (own !== TaskState.TASK_STATE_COMPLETED) return { state: own, text: error ?? waiting?.detail ?? null, at }
  const { approval, question, is_approved } = run
  if (approval) {
    const text =
      `${approval.version === undefined ? '' : 'The skill '}${approval.skill_id} waits for the approval ${approval.approval_id}: an operator decides. ` +
      'With such a key, answer this task with the data {"decision": "approve"} or {"decision": "reject", "reason": "…"}.'
    return { state: TaskState.TASK_STATE_INPUT_REQUIRED, text, at: approval.at }
  }
  if (question) {
    const text = question.questions.length > 0 ? question.questions.join('\n') : 'More information is needed.'
    return { state: TaskState.TASK_STATE_INPUT_REQUIRED, text, at }
  }
  if (is_approved) return { state: TaskState.TASK_STATE_WORKING, text: 'It was approved.', at }
  return { state: own, text: outcome?.by === 'filter' ? 'The filter of the agent ignored it.' : null, at }
}

function artifactsOf({ outcome }: EventRecord, run: MessageRun): Artifact[] {
  const replies = run.replies.map(({ seq, content }) => artifact(`reply:${seq}`, 'Reply', [textPart(content)]))
  const data = resultIn(outcome)
  return data === undefined ? replies : [...replies, artifact('result', 'Result', [dataPart(data)])]
}

function resultIn(outcome: EventRecord['outcome']): unknown {
  if (outcome?.by === 'turn') return outcome.result ?? undefined
  return outcome && 'action' in outcome ? outcome.action : undefined
}

const artifact = (artifactId: string, name: string, parts: Part[]): Artifact => ({
  artifactId,
  name,
  description: '',
  parts,
  metadata: undefined,
  extensions: [],
})

const rest = { metadata: undefined, filename: '' }
const textPart = (value: string): Part => ({ content: { $case: 'text', value }, mediaType: 'text/plain', ...rest })
const dataPart = (value: unknown): Part => ({ content: { $case: 'data', value }, mediaType: 'application/json', ...rest })

const agentMessage = (messageId: string, text: string, ids: Pick<Message, 'taskId' | 'contextId'>): Message => ({
  messageId,
  ...ids,
  role: Role.ROLE_AGENT,
  parts: [textPart(text)],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
})

/** The artifacts that are new, then the state if it changed. */
function* changes(before: Task, { id: taskId, contextId, artifacts, status }: Task): Generator<StreamResponse> {
  const known = new Set(before.artifacts.map(({ artifactId }) => artifactId))
  const ids = { taskId, contextId, metadata: undefined }
  for (const artifact of artifacts.filter(({ artifactId }) => !known.has(artifactId)))
    yield { payload: { $case: 'artifactUpdate', value: { ...ids, artifact, append: false, lastChunk: true } } }
  if (status?.state !== before.status?.state) yield { payload: { $case: 'statusUpdate', value: { ...ids, status } } }
}

type WantedTasks = Pick<ListTasksRequest, 'status' | 'statusTimestampAfter'>

function isWanted({ status }: Task, { status: state, statusTimestampAfter: after }: WantedTasks): boolean {
  const is_in_state = state === TaskState.TASK_STATE_UNSPECIFIED || status?.state === state
  return is_in_state && Date.parse(status?.timestamp ?? NEVER) >= Date.parse(after ?? NEVER)
}

/** The parts that a message consists of, as an event understands them. */
type A2aContent = { text: string; data: Record<string, unknown> | null }

function saidIn({ parts }: Message): A2aContent {
  const texts: string[] = []
  let data: A2aContent['data'] = null
  for (const { content } of parts) {
    if (content?.$case === 'raw' || content?.$case === 'url')
      throw new ContentTypeNotSupportedError('Files are not supported: a message has parts of text, and at most one part of data.')
    if (content?.$case === 'text') texts.push(content.value)
    else if (content?.$case === 'data' && isJsonFields(content.value) && data === null) data = content.value
    else throw malformed('A message has parts of text, and at most one part of data, which is an object.')
  }
  if (texts.length === 0 && data === null) throw malformed('A message has at least one part.')
  return { text: texts.join('\n'), data }
}

/**
 * The event of a message: its id is `messageId`, so that a message that is sent again is a
 * duplicate. Data with a `type` is that event; a text is a `ws.message`.
 */
function eventOf(message: Message, rules: EventRules, task: Event | null): Clean<Event> {
  const { messageId } = message
  if (messageId === '') throw malformed('messageId is required: messages that repeat it are dropped.')
  const { text, data } = saidIn(message)
  const fields = data && typeof data['type'] === 'string' ? data : { type: 'ws.message', content: textOf(text, data) }
  const { source, trace } = rules.defaults
  const about = task
    ? { trace_id: task.meta.trace_id, correlation_id: task.meta.correlation_id ?? task.id, causation_id: task.id }
    : { correlation_id: null, causation_id: null, ...trace }
  const parsed = parseEvent({ connection_id: `a2a:${source}`.slice(0, 128), ...fields, id: messageId, source, meta: about }, rules)
  if (parsed.ok) return parsed.event
  const [{ path, message: why } = { path: '', message: 'it is invalid' }] = parsed.errors
  throw malformed(`${path === 'id' ? 'messageId' : path || 'the event'}: ${why}`)
}

const textOf = (text: string, data: A2aContent['data']): string =>
  data === null ? text : [text, JSON.stringify(data)].filter(Boolean).join('\n')

function flawOf(error: z.ZodError): string {
  const [first] = fromZod(error)
  return first ? `${first.path}: ${first.message}` : 'it is invalid'
}

const malformed = (message: string): RequestMalformedError => new RequestMalformedError(message)

/** The interval at which a stream looks for news. */
const LOOK_EVERY_MS = 500
const KEY_ENDED = 'The key of this stream was deleted or has expired.'
const MOST_LISTED = 20
/** Before every task. */
const NEVER = '1970-01-01T00:00:00Z'
const decision = approvedFor.extend({ decision: z.enum(['approve', 'reject']) })

/** A scope as an A2A agent. Tasks are views of its events: nothing is stored for them. */
export class ScopeAgent implements A2ARequestHandler {
  readonly #c: Caller
  readonly #failed: (error: unknown) => void

  /** The SDK answers with the text of every error: `failed` gets errors of other kinds. */
  constructor(c: Caller, failed: (error: unknown) => void) {
    this.#c = c
    this.#failed = failed
  }

  async getAgentCard(): Promise<AgentCard> {
    return agentCard(this.#origin, this.#c.var.scope)
  }

  getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    return this.#try(() => this.#extendedCard())
  }

  async #extendedCard(): Promise<AgentCard> {
    const page = JSON.parse(await this.#stub.skills({ after: '', limit: 100 })) as { skills: { manifest: Manifest }[] }
    const skills = page.skills.map(({ manifest: { id, description = '', activation } }) =>
      agentSkill(id, description, activation.keywords_any),
    )
    return agentCard(this.#origin, this.#c.var.scope, skills.length > 0 ? skills : undefined)
  }

  sendMessage(request: SendMessageRequest): Promise<Task> {
    return this.#try(async () => {
      const id = await this.#receive(request)
      if (request.configuration?.returnImmediately !== true) await this.#settled(id)
      return this.#task(id)
    })
  }

  async *sendMessageStream(request: SendMessageRequest): AsyncGenerator<StreamResponse, void, undefined> {
    yield* this.#follow(await this.#receive(request))
  }

  async *resubscribe({ id }: { id: string }): AsyncGenerator<StreamResponse, void, undefined> {
    demandRole(this.#c.var.principal, 'viewer')
    if (isEnded(await this.#task(id))) throw new UnsupportedOperationError(`The task ${id} has ended: get it instead.`)
    yield* this.#follow(id)
  }

  getTask({ id }: { id: string }): Promise<Task> {
    return this.#try(() => {
      demandRole(this.#c.var.principal, 'viewer')
      return this.#task(id)
    })
  }

  listTasks(request: ListTasksRequest): Promise<ListTasksResponse> {
    return this.#try(() => this.#list(request))
  }

  cancelTask({ id }: { id: string }): Promise<Task> {
    return this.#try(() => this.#cancel(id))
  }

  async #list({ contextId, pageSize = MOST_LISTED, pageToken, ...wanted }: ListTasksRequest): Promise<ListTasksResponse> {
    const { principal, scope } = this.#c.var
    demandRole(principal, 'viewer')
    if (!/^\d{0,19}$/.test(pageToken)) throw malformed('pageToken: pass the nextPageToken of the page before.')
    if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > 100) throw malformed('pageSize: a whole number from 1 to 100.')
    if (wanted.status === TaskState.UNRECOGNIZED) throw malformed('status: a state of A2A, such as TASK_STATE_WORKING.')
    if (Number.isNaN(Date.parse(wanted.statusTimestampAfter ?? NEVER))) throw malformed('statusTimestampAfter: a time of ISO 8601.')
    const limit = Math.min(pageSize, MOST_LISTED)
    const query = { scope, patterns: principal.scopes, limit, ...(pageToken !== '' && { cursor: pageToken }) }
    const page: Awaited<ReturnType<typeof listEvents>> =
      contextId === '' || contextId === scope ? await listEvents(storeOf(this.#c.env), query) : { items: [], next_cursor: null }
    // A2A has no field that would say what a list lacks.
    demandWhole({ missing: new Set(page.missing) })
    const found = await Promise.all(page.items.map(({ id }) => factsOf(this.#stub, id)))
    const tasks = found.flatMap((facts) => (facts ? [taskOf(facts)] : [])).filter((task) => isWanted(task, wanted))
    const shown = wanted.includeArtifacts === true ? tasks : tasks.map((task) => ({ ...task, artifacts: [] }))
    return { tasks: shown, nextPageToken: page.next_cursor ?? '', pageSize: limit, totalSize: shown.length }
  }

  async #cancel(id: string): Promise<Task> {
    const { principal } = this.#c.var
    demandRole(principal, 'operator')
    const facts = await this.#found(id)
    const task = taskOf(facts)
    const { approval } = facts.run
    if (isWaiting(task) && approval) await this.#decide(approval.approval_id, { decision: 'reject', reason: 'its task was cancelled' })
    else if (facts.latest.status === 'processing') await this.#stub.cancel('its task was cancelled', principal.name, this.#traceparent)
    else throw new TaskNotCancelableError(`The task ${id} is not being worked on: its event is ${facts.latest.status}.`)
    await this.#settled(id)
    return this.#task(id)
  }

  createTaskPushNotificationConfig = noPush
  getTaskPushNotificationConfig = noPush
  listTaskPushNotificationConfigs = noPush
  deleteTaskPushNotificationConfig = noPush

  async #try<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof A2AError)) this.#failed(error)
      throw error
    }
  }

  get #stub() {
    return this.#c.env.SCOPE.getByName(this.#c.var.scope)
  }

  get #origin(): string {
    return new URL(this.#c.req.url).origin
  }

  get #traceparent(): string | undefined {
    return this.#c.req.header('traceparent')
  }

  /** Accepts the event of a message, and returns the id of its task. */
  async #receive({ message }: SendMessageRequest): Promise<string> {
    const { principal, scope } = this.#c.var
    demandRole(principal, 'publisher')
    if (!message) throw new RequestMalformedError('message is required.')
    if (message.contextId !== '' && message.contextId !== scope)
      throw new RequestMalformedError(`contextId: must be ${scope}, the scope of this endpoint.`)
    const task = message.taskId === '' ? null : await this.#found(message.taskId)
    if (task && (await this.#isDecided(task, message))) return task.task.id
    if (task && !isWaiting(taskOf(task))) {
      if (await this.#isRepeated(task, message)) return task.task.id
      throw new UnsupportedOperationError(`The task ${message.taskId} asks for nothing: send a message without a task.`)
    }
    const rules = { ...eventRules(this.#c, scope), heard: true }
    const trace = traceContextOf(this.#traceparent, this.#c.req.header('tracestate'))
    const event = eventOf(message, { ...rules, defaults: { ...rules.defaults, trace } }, task?.task ?? null)
    const answer = await this.#stub.accept([event], 'http')
    if (!answer.ok) throw inboxFull(scope, answer)
    return task?.task.id ?? event.id
  }

  /** Decides the approval that a task waits for, if the message says how. */
  async #isDecided({ run: { approval } }: TaskFacts, message: Message): Promise<boolean> {
    const { data } = saidIn(message)
    if (!approval || data === null || !('decision' in data)) return false
    const given = decision.safeParse(data)
    if (!given.success) throw malformed(flawOf(given.error))
    demandRole(this.#c.var.principal, 'operator')
    await this.#decide(approval.approval_id, given.data)
    return true
  }

  /** True of an answer that this task has had: a new message, or the decision that was made. */
  async #isRepeated({ task, run: { decided } }: TaskFacts, message: Message): Promise<boolean> {
    const given = decision.safeParse(saidIn(message).data)
    if (given.success) return decided.has(given.data.decision === 'approve' ? 'approved' : 'rejected')
    const sent = await this.#stub.event(message.messageId)
    return sent?.event.meta.correlation_id === (task.meta.correlation_id ?? task.id)
  }

  async #decide(id: string, { decision: how, reason, edits }: z.infer<typeof decision>): Promise<void> {
    const {
      env,
      var: { principal, scope },
    } = this.#c
    const found = await findApproval(storeOf(env), id, Date.now())
    if (found?.scope !== scope) throw new TaskNotFoundError(`There is no approval ${id}.`)
    const status = how === 'approve' ? 'approved' : 'rejected'
    await decide(env, principal, { id, status, reason, ...(how === 'approve' && { edits }), traceparent: this.#traceparent })
  }

  async #task(id: string): Promise<Task> {
    return taskOf(await this.#found(id))
  }

  async #found(id: string): Promise<TaskFacts> {
    if (id === '') throw malformed('id is required: the id of the task, which is the messageId of its message.')
    const facts = id.length > 128 ? null : await factsOf(this.#stub, id)
    if (facts) {
      demandReader(this.#c.var.principal, facts.task)
      return facts
    }
    throw new TaskNotFoundError(`There is no task ${id.slice(0, 128)} in the scope ${this.#c.var.scope}.`)
  }

  /** Waits until the task ends or asks for something, but no longer than a request may. */
  async #settled(id: string): Promise<void> {
    const until = Date.now() + limits.wait_ms
    for (;;) {
      const facts = await this.#found(id)
      const task = taskOf(facts)
      const left = until - Date.now()
      if (isEnded(task) || isWaiting(task) || left <= 0) return
      await this.#news(facts, Math.min(left, limits.wait_ms))
    }
  }

  /** An event settles within the wait; what follows from an approval is looked for. */
  async #news({ latest }: TaskFacts, timeout_ms: number): Promise<void> {
    if (OPEN.has(latest.status)) await this.#stub.outcomes([latest.event.id], timeout_ms)
    else await scheduler.wait(Math.min(LOOK_EVERY_MS, timeout_ms))
  }

  async *#follow(id: string): AsyncGenerator<StreamResponse, void, undefined> {
    let facts = await this.#found(id)
    let seen = taskOf(facts)
    yield { payload: { $case: 'task', value: seen } }
    while (!isEnded(seen) && !isWaiting(seen)) {
      await this.#news(facts, LOOK_EVERY_MS)
      if (await isKeyEnded(this.#c.env, this.#c.var.principal)) throw new RequestMalformedError(KEY_ENDED)
      facts = await this.#found(id)
      const task = taskOf(facts)
      yield* changes(seen, task)
      seen = task
    }
  }
}

const OPEN = new Set<string>(eventStatuses.slice(0, 3))

async function noPush(): Promise<never> {
  throw new PushNotificationNotSupportedError(
    'Push notifications are not supported: subscribe to the task, or let an operator set webhooks of the scope.',
  )
}
