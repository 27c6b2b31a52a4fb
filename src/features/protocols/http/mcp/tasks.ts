import {
  MissingRequiredClientCapabilityError,
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { iso } from '../../../../base/time.ts'
import { fromZod } from '../../../../contract/problem.ts'
import { hasRole } from '../../../../contract/principal.ts'
import { demandRole, type Caller } from '../../../../http/auth/middleware.ts'
import { callResult } from './answer.ts'
import { approvalHere, approvedRun, decideHere, originOf, resultOf } from './approved-run.ts'
import { APPROVAL, approvalAnswer, approvalForm } from './questions.ts'
import { type Abilities, abilitiesOf, TASKS } from './abilities.ts'
import type { Trying } from './transport.ts'
import { decide } from '../../../approvals/http/approvals.ts'

/** As in the specification of the extension. */
export type Task = { taskId: string; status: 'working' | 'input_required' | 'completed'; [field: string]: unknown }

/** The retention of runs is at least a day. */
const TTL_MS = 86_400_000
const POLL_MS = 1000

/**
 * A task is a run of a scope, by the cause that it is stored under: a call, or an approval that it
 * waits for. Null if it does not exist.
 */
export async function taskOf(c: Caller, taskId: string, form: boolean): Promise<Task | null> {
  const [kind, id = ''] = taskId.split(':')
  return kind === 'approval' ? approvalTask(c, id, form) : callTask(c, taskId)
}

async function callTask(c: Caller, taskId: string): Promise<Task | null> {
  const run = await c.env.SCOPE.getByName(c.var.scope).skillCall(taskId)
  if (!run) return null
  const { started_at, ended_at } = run
  const head = headOf(taskId, started_at, ended_at ?? started_at)
  const result = resultOf(run.result)
  return result ? { ...head, status: 'completed', result: { ...callResult(result, originOf(c)) } } : { ...head, status: 'working' }
}

async function approvalTask(c: Caller, id: string, form: boolean): Promise<Task> {
  const approval = await approvalHere(c, id)
  const state = await approvedRun(c, approval)
  const head = headOf(
    `approval:${id}`,
    approval.created_at,
    state.at === 'ended' ? state.ended_at : (approval.decided_at ?? approval.created_at),
  )
  if (state.at === 'ended') return { ...head, status: 'completed', result: { ...state.result } }
  if (state.at === 'working') return { ...head, status: 'working', statusMessage: 'It was approved.' }
  const statusMessage = `It waits for the approval ${id} by an operator.`
  if (!form || !hasRole(c.var.principal, 'operator')) return { ...head, status: 'working', statusMessage }
  return { ...head, status: 'input_required', statusMessage, inputRequests: { [APPROVAL]: approvalForm(approval, c.var.principal) } }
}

const headOf = (taskId: string, created_at: number, updated_at: number) => ({
  taskId,
  createdAt: iso(created_at),
  lastUpdatedAt: iso(updated_at),
  ttlMs: TTL_MS,
  pollIntervalMs: POLL_MS,
})

const taskId = z.string().regex(/^(?:call|approval):[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, 'there is no such task')
const updated = z.looseObject({ taskId, inputResponses: z.record(z.string(), z.unknown()).optional() })
type TaskUpdate = { able: Abilities; id: string; inputResponses: z.infer<typeof updated>['inputResponses'] }

/** `tasks/get`, `tasks/update` and `tasks/cancel`, for clients that declare the extension. */
export function serveTasks({ server }: McpServer, c: Caller, trying: Trying): void {
  // The extension comes first: what a client without it sends is not looked at.
  const open = (params: unknown, mcpReq: ServerContext['mcpReq']): TaskUpdate => {
    const able = abilitiesOf(mcpReq)
    if (!able.tasks) throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS]: {} } } })
    const parsed = updated.safeParse(params)
    if (!parsed.success) throw invalid(parsed.error)
    demandRole(c.var.principal, 'publisher')
    return { able, id: parsed.data.taskId, inputResponses: parsed.data.inputResponses }
  }
  const any = { params: z.looseObject({}) }
  server.setRequestHandler('tasks/get', any, (params, { mcpReq }) =>
    trying(async () => {
      const { able, id } = open(params, mcpReq)
      return (await taskOf(c, id, able.form)) ?? unknown(id)
    }),
  )
  server.setRequestHandler('tasks/update', any, (params, { mcpReq }) =>
    trying(async () => {
      const { id, inputResponses } = open(params, mcpReq)
      if (!(await taskOf(c, id, false))) unknown(id)
      // The SDK lifts the answers out of the parameters.
      const answer = approvalAnswer(inputResponses ?? mcpReq.inputResponses)
      if (id.startsWith('approval:') && answer.kind === 'given') await decideHere(c, await approvalHere(c, idOf(id)), answer.content)
      return {}
    }),
  )
  server.setRequestHandler('tasks/cancel', any, (params, { mcpReq }) =>
    trying(async () => {
      const { id } = open(params, mcpReq)
      if (!(await taskOf(c, id, false))) unknown(id)
      await cancel(c, id)
      return {}
    }),
  )
}

function invalid(error: z.ZodError): ProtocolError {
  const [first] = fromZod(error)
  return new ProtocolError(ProtocolErrorCode.InvalidParams, `params.${first?.path}: ${first?.message}`)
}

/** Stops and compensates a run. An approval that nobody decided is withdrawn. */
async function cancel(c: Caller, id: string): Promise<void> {
  const {
    env,
    var: { scope, principal },
  } = c
  const stop = () => env.SCOPE.getByName(scope).skillCall(id, principal.name)
  if (id.startsWith('call:')) return void (await stop())
  const { id: approval_id, status } = await approvalHere(c, idOf(id))
  if (status === 'approved') await stop()
  if (status !== 'pending') return
  const reason = 'its task was cancelled'
  await decide(env, principal, { id: approval_id, status: 'rejected', reason, traceparent: c.req.header('traceparent') })
}

const idOf = (id: string): string => id.slice(id.indexOf(':') + 1)

function unknown(id: string): never {
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Task not found: ${id}`)
}
