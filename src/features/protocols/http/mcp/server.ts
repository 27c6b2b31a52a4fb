import {
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type CallToolRequest,
  type CallToolResult,
  inputRequired,
  type InputRequiredResult,
} from '@modelcontextprotocol/server'
import { fromZod } from '../../../../contract/problem.ts'
import { proposeSkillInput, type Proposal } from '../../../../skills/asp/parse.ts'
import { skillId } from '../../../../contract/skill-names.ts'
import { WHY } from '../../../../skills/manifest/names.ts'
import { abilitiesOf, TASKS } from './abilities.ts'
import { type Caller, demandRole } from '../../../../http/auth/middleware.ts'
import { tellOf, StepProgress, type Tell } from './progress.ts'
import { serveTasks, taskOf, type Task } from './tasks.ts'
import { idOf, toolName } from './tool-name.ts'
import { type SkillsPage, toolOf } from './tool.ts'
import type { Era, Trying } from './transport.ts'
import { z } from 'zod'
import { jsonValue } from '../../../../base/json.ts'
import type { ProposalResult } from '../../../../skills/session/result.ts'
import { propose } from '../../../../http/skills/propose.ts'
import { approvalOf, callResult, said } from './answer.ts'
import { approvalHere, approvedRun, badState, decideHere, originOf } from './approved-run.ts'
import {
  APPROVAL,
  approvalAnswer,
  approvalForm,
  type ElicitedAnswer,
  type ElicitedDecision,
  slotAnswer,
  slotForm,
  SLOTS,
} from './questions.ts'

/** `form`, `tasks`: the client can show forms, and follow tasks. */
type SkillCallRequest = {
  proposal: Proposal
  dry_run: boolean
  traceparent: string | undefined
  form: boolean
  tasks: boolean
  responses: Record<string, unknown> | undefined
  state: string | undefined
  /** Null: the client wants no progress. */
  tell: Tell | null
}
type CallAnswer = CallToolResult | InputRequiredResult | (Task & { resultType: 'task' })

/** After this time, a client that follows tasks gets one for a run that continues. */
const TASK_AFTER_MS = 2000
/** Longest wait for the run of an approval that was just given. */
const RUN_WITHIN_MS = 20_000
const LOOK_EVERY_MS = 200

/**
 * The state that a client sends back with its answers. It is not signed: it names inputs, which
 * the client could give as arguments, and an approval, to which the key needs access.
 */
const returned = z.strictObject({ inputs: z.record(z.string(), z.json()).optional(), approval: z.uuid().optional() })

/** Proposes a skill. Questions and approvals are asked of the client's user if it can ask. */
async function callSkill(c: Caller, request: SkillCallRequest): Promise<CallAnswer> {
  demandRole(c.var.principal, 'publisher')
  const { proposal, responses, dry_run, form, tasks } = request
  const { inputs: earlier, approval } = stateOf(request.state)
  if (approval !== undefined) return afterApproval(c, approval, approvalAnswer(responses))
  const slots = slotAnswer(responses)
  const answered = { ...earlier, ...(slots.kind === 'given' && slots.content) }
  const begun = await begin(c, { ...request, proposal: { ...proposal, inputs: { ...proposal.inputs, ...answered } } })
  if ('task' in begun) return created(begun.task)
  const { answer } = begun
  if (!dry_run && form && answer.status === 'clarify' && slots.kind !== 'declined') {
    const question = await formFor(c, answer)
    if (question) return inputRequired({ inputRequests: { [SLOTS]: question }, requestState: JSON.stringify({ inputs: answered }) })
  }
  if (answer.status === 'needs_approval' && answer.approval_id !== null && (form || tasks)) {
    const waiting = await approvalHere(c, answer.approval_id)
    const task = tasks ? await taskOf(c, `approval:${waiting.id}`, form) : null
    if (task) return created(task)
    const inputRequests = { [APPROVAL]: approvalForm(waiting, c.var.principal) }
    if (form) return inputRequired({ inputRequests, requestState: JSON.stringify({ approval: waiting.id }) })
  }
  return callResult(answer, originOf(c))
}

/** The questions of a task are given by `tasks/get`. */
const created = ({ inputRequests: _asked, ...task }: Task): CallAnswer => ({ ...task, resultType: 'task' })

function stateOf(text: string | undefined): z.infer<typeof returned> {
  if (text === undefined) return {}
  const parsed = returned.safeParse(jsonValue(text))
  if (parsed.success) return parsed.data
  throw badState()
}

async function begin(c: Caller, request: SkillCallRequest): Promise<{ answer: ProposalResult } | { task: Task }> {
  const call_id = crypto.randomUUID()
  if (!request.tell || request.dry_run) return answerTo(c, request, call_id)
  const progress = new StepProgress(c, { call_id, skill_id: request.proposal.skill_id }, request.tell)
  await progress.follow()
  try {
    const begun = await answerTo(c, request, call_id)
    if ('answer' in begun) await progress.end(begun.answer.steps)
    return begun
  } finally {
    await progress.stop()
  }
}

async function answerTo(
  c: Caller,
  { proposal, dry_run, traceparent, tasks, form }: SkillCallRequest,
  call_id: string,
): Promise<{ answer: ProposalResult } | { task: Task }> {
  const answered = propose(c, proposal, { from: 'model', dry_run, traceparent, call_id }).then((text) => JSON.parse(text) as ProposalResult)
  if (!tasks || dry_run) return { answer: await answered }
  for (;;) {
    const answer = await Promise.race([answered, scheduler.wait(TASK_AFTER_MS)])
    if (answer) return { answer }
    // Until its run has begun, nothing durable stands for the call.
    const task = await taskOf(c, `call:${call_id}`, form)
    if (!task) continue
    c.executionCtx.waitUntil(answered.catch(() => {}))
    return { task }
  }
}

async function formFor({ env, var: { scope } }: Caller, { skill_id, questions }: ProposalResult) {
  const page = JSON.parse(await env.SCOPE.getByName(scope).skills({ after: '', limit: 1, only: skill_id })) as SkillsPage
  const [found] = page.skills
  return found ? slotForm(questions, found.manifest) : null
}

async function afterApproval(c: Caller, id: string, answer: ElicitedAnswer<ElicitedDecision>): Promise<CallToolResult> {
  const found = await approvalHere(c, id)
  const given = answer.kind === 'given' ? answer.content : { decision: 'wait' as const }
  if (given.decision !== 'wait') await decideHere(c, found, given)
  const until = Date.now() + RUN_WITHIN_MS
  for (;;) {
    const state = await approvedRun(c, await approvalHere(c, id))
    if (state.at === 'ended') return state.result
    if (state.at === 'waiting' || Date.now() > until) {
      const { skill_id, version } = found
      const reason = state.at === 'waiting' ? 'It still waits for an approval.' : 'It is approved and running.'
      const approval = approvalOf(id, originOf(c))
      return said({ skill_id, version, status: 'needs_approval', reason, approval }, { isError: true })
    }
    await scheduler.wait(LOOK_EVERY_MS)
  }
}

/** Many clients read only the first page. */
export const TOOLS_PER_PAGE = 100
const DRY_RUN = 'reflex/dry_run'
/** The time for which a client may keep the list of tools and the server's description. */
const LIST_MS = 5000
const ABOUT_MS = 300_000

/** The skills of a scope as an MCP server for one request. A call is a proposal to the gate. */
export function skillServer(c: Caller, trying: Trying, era: Era): McpServer {
  const { scope } = c.var
  const stub = c.env.SCOPE.getByName(scope)
  const mcp = new McpServer(
    { name: 'reflex', title: `Reflex: ${scope}`, version: '1' },
    {
      instructions: instructionsFor(scope),
      cacheHints: {
        'tools/list': { ttlMs: LIST_MS, cacheScope: 'private' },
        'server/discover': { ttlMs: ABOUT_MS, cacheScope: 'private' },
      },
    },
  )
  // Given to the constructor, it would promise notifications of changed lists.
  mcp.server.registerCapabilities({ tools: {}, ...(era === 'modern' && { extensions: { [TASKS]: {} } }) })

  mcp.server.setRequestHandler('tools/list', async ({ params }) => {
    const after = cursorOf(params?.cursor)
    const text = await trying(() => stub.skills({ after, limit: TOOLS_PER_PAGE }))
    const { goal_labels, tau, skills: page, more } = JSON.parse(text) as SkillsPage
    const tools = await Promise.all(page.map(({ manifest, needed, acts }) => toolOf(manifest, { goal_labels, tau, needed, acts })))
    const last = page.at(-1)
    return more && last ? { tools, nextCursor: last.manifest.id } : { tools }
  })

  mcp.server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const { [DRY_RUN]: dry_run = false, traceparent } = mcpReq._meta ?? {}
    if (typeof dry_run !== 'boolean') throw invalid(`_meta["${DRY_RUN}"] is true or false.`)
    if ('task' in params) throw invalid('Tasks of the version 2025-11-25 are not supported.')
    const proposal = await proposalOf(params, () => trying(() => stub.skillIds()))
    const asked = {
      ...abilitiesOf(mcpReq),
      responses: mcpReq.inputResponses,
      state: mcpReq.requestState<string>(),
      tell: tellOf(mcpReq),
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    }
    // The result of a task is another kind of result than the SDK's types know.
    return (await trying(() => callSkill(c, { proposal, dry_run, ...asked }))) as CallToolResult
  })
  if (era === 'modern') serveTasks(mcp, c, trying)
  return mcp
}

const instructionsFor = (scope: string): string =>
  `The tools are skills of the Reflex scope ${scope}. A gate decides whether a call runs; give the reason for it in ${WHY}. A refusal lists in to_pass what would ` +
  'have to change. If an approval is needed, a person decides, and an approved call runs once by itself: do not call again.'

function cursorOf(cursor: string | undefined): string {
  if (cursor === undefined) return ''
  const id = skillId.safeParse(cursor)
  if (!id.success) throw invalid("Invalid cursor: pass the previous page's nextCursor.")
  return id.data
}

async function proposalOf({ name, arguments: given = {} }: CallToolRequest['params'], ids: () => Promise<string[]>): Promise<Proposal> {
  const { [WHY]: why, ...inputs } = given
  const skill_id = await skillNamed(name, ids)
  const parsed = proposeSkillInput.safeParse({ skill_id, inputs, ...(why === undefined ? {} : { why }) })
  if (parsed.success) return parsed.data
  const [error] = fromZod(parsed.error)
  throw invalid(`arguments: ${error?.path === 'why' ? WHY : error?.path} ${error?.message}`)
}

async function skillNamed(name: string, ids: () => Promise<string[]>): Promise<string> {
  const written = idOf(name)
  if (typeof written === 'object') return written.id
  if (written === 'hashed') {
    for (const id of await ids()) if ((await toolName(id)) === name) return id
  }
  throw invalid(`Unknown tool ${name}: use tools/list for the available ones.`)
}

const invalid = (message: string): ProtocolError => new ProtocolError(ProtocolErrorCode.InvalidParams, message)
