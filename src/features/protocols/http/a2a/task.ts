import { type Artifact, type Message, type Part, Role, type StreamResponse, type Task, TaskState } from '@a2a-js/sdk'
import type { EventRecord, EventStatus } from '../../../../contract/event-record.ts'
import type { ScopeApi } from '../../../../contract/scope-api.ts'
import type { Event } from '../../../../core/event.ts'
import { messageRun, type MessageRun } from '../../../../traces/message-run.ts'
import { traceRecording } from '../../../../traces/recording-lines.ts'

/** The parts of a task in its scope: its event, the newest event that answered it, and its run. */
export type TaskFacts = { task: Event; latest: EventRecord; run: MessageRun }

/** The facts of one event; null if the scope does not have it. */
export async function factsOf(scope: Pick<ScopeApi, 'event' | 'recording'>, id: string): Promise<TaskFacts | null> {
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
export const isEnded = ({ status }: Task): boolean => status !== undefined && ENDED.has(status.state)
export const isWaiting = ({ status }: Task): boolean => status?.state === TaskState.TASK_STATE_INPUT_REQUIRED

/** A task as a view of an event, of what decided it, and of the log of its trace. */
export function taskOf({ task, latest, run }: TaskFacts): Task {
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
      `The skill ${approval.skill_id} waits for the approval ${approval.approval_id}: an operator decides. ` +
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

export const agentMessage = (messageId: string, text: string, ids: Pick<Message, 'taskId' | 'contextId'>): Message => ({
  messageId,
  ...ids,
  role: Role.ROLE_AGENT,
  parts: [textPart(text)],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
})

/** The artifacts that are new, then the state if it changed. */
export function* changes(before: Task, { id: taskId, contextId, artifacts, status }: Task): Generator<StreamResponse> {
  const known = new Set(before.artifacts.map(({ artifactId }) => artifactId))
  const ids = { taskId, contextId, metadata: undefined }
  for (const artifact of artifacts.filter(({ artifactId }) => !known.has(artifactId)))
    yield { payload: { $case: 'artifactUpdate', value: { ...ids, artifact, append: false, lastChunk: true } } }
  if (status?.state !== before.status?.state) yield { payload: { $case: 'statusUpdate', value: { ...ids, status } } }
}
