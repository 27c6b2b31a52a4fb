import type { Api } from '../../cli/lib/api.ts'
import type { SettingsPatch } from '../../src/contract/settings/settings.ts'
import type { CiReport } from '../../src/contract/reports/skill-test.ts'
import { tracesOf } from '../../src/features/learning/episodes/recordings.ts'
import { learnSkills } from '../../src/features/learning/skills/learn.ts'
import { costOf, type Trace } from '../../src/features/learning/skills/trace.ts'
import { openRecordings } from '../../src/features/replay/recording.ts'
import { factsOf } from '../../src/tools/tool-facts.ts'
import type { Cloud } from './cloud.ts'
import type { Step } from './eight-steps.ts'
import { readLog } from './read-log.ts'
import { learningTools, scopePath } from './set-up.ts'

const APPS = ['payments-stg-webapp', 'orders-stg-webapp']
const RUNS = 6
/** The share of the first run's cost that a run of the learned skill may have. */
const MOST_COST = 0.6

const instructions = `You deploy software for a team. If a listed skill does it, propose that skill and wait for its result. Otherwise use the tools, one step at a time: ensure the registry, build and push the image of the commit, deploy it to the app.
Say at the end, in one or two sentences, what was done and where it runs.`

/**
 * The agent deploys by its tools, one at a time. From the exported traces a skill is mined,
 * compiled and tested; it is registered, tested by the deployment, activated, and used by the next
 * run.
 */
export async function tellLearning(api: Api, cloud: Cloud): Promise<Step[]> {
  const first: Trace[] = []
  for (let run = 0; run < RUNS; run += 1) first.push((await deploy(api, cloud, run)).trace)
  const http_tools = learningTools(cloud.url)
  const facts = Object.fromEntries(
    http_tools.map(({ name, repeatable = false, undoes }) => [name, { repeatable, ...(undoes && { undoes }) }]),
  )
  const learned = await learnSkills(first, {
    tools: factsOf(facts),
    owner: 'learned',
    roles: ['ReleaseManager'],
    parser_model: null,
    seed: '1',
    // The team's own key sent all of them.
    trusted: new Set(first.flatMap(({ source }) => source ?? [])),
    latest: () => null,
  })
  const [candidate] = learned.candidates
  if (!candidate) return [nothingLearned(learned.rejected)]
  const { manifest, cases, report, evidence } = candidate
  const ref = `${manifest.id}@${manifest.version}`
  await api.json('/v1/skills', { method: 'POST', body: manifest })
  const tested = await api.json<CiReport>(`/v1/skills/${ref}/test`, { method: 'POST', body: { cases } })
  const { state } = await api.json<{ state: string }>(`/v1/skills/${ref}/state`, { method: 'POST', body: { state: 'active' } })
  const next = await deploy(api, cloud, RUNS)
  const [before, after] = [first[0], next.trace].map(measured)
  const share = (after?.cost_usd ?? 1) / (before?.cost_usd ?? 1)
  const steps = manifest.plan.steps.map(({ tool }) => tool.replace(/^http\./, ''))
  return [
    {
      title: `From ${RUNS} runs that called tools, the miner finds a sequence and the compiler makes a skill of it.`,
      shown: [
        steps.join(' → '),
        `inputs ${manifest.signature.inputs.map(({ name, type }) => `${name}: ${type}`).join(', ')}; in ${evidence.turns} turns`,
        `undone by ${manifest.plan.compensation.map(({ tool }) => tool.replace(/^http\./, '')).join(', ')}`,
      ],
      holds: steps.join() === 'ensure_acr,docker_build_and_push,deploy' && report.passed,
    },
    {
      title: 'Its tests pass in the deployment, so that it may become active.',
      shown: [
        `${tested.unit.passed} of ${tested.unit.n} recorded turns, ${tested.fuzz.passed} of ${tested.fuzz.n} mutations; ${ref} is ${state}`,
      ],
      holds: tested.passed && state === 'active',
    },
    {
      title: `The next run proposes it, and costs at most ${MOST_COST} of the first.`,
      shown: [`first: ${textOf(before)}`, `next:  ${textOf(after)}`, `share of the cost: ${share.toFixed(2)}`],
      holds: next.ran === manifest.id && share <= MOST_COST,
    },
  ]
}

const nothingLearned = (rejected: readonly { what: string; reason: string }[]): Step => ({
  title: 'The miner finds a sequence.',
  shown: rejected.map(({ what, reason }) => `${what}: ${reason}`),
  holds: false,
})

/** A deployment in a scope of its own, so that no run has the conversation of another. */
async function deploy(api: Api, cloud: Cloud, run: number): Promise<{ trace: Trace; ran: string | undefined }> {
  const scope = `deploy/release-${run}`
  const body: SettingsPatch = {
    agent: 'deploy',
    project: 'acme/payments',
    env: 'staging',
    toolset: 'release',
    goal_labels: ['deploy'],
    instructions,
    allowed_hosts: [cloud.host],
    http_tools: learningTools(cloud.url),
    blackboard: { policy: { roles: ['ReleaseManager'] } },
  }
  await api.json(scopePath(scope), { method: 'PATCH', body })
  const content = `Deploy commit ${(0xa1b2c3d + run).toString(16)} to ${APPS[run % APPS.length]}`
  const event = { type: 'ws.message', connection_id: 'alice', content }
  await api.json(scopePath(scope, '/events?wait=outcome&timeout_ms=30000'), { method: 'POST', body: event })
  const log = await readLog(api, scope)
  const trace_id = log.find(({ kind }) => kind === 'turn-ended')?.trace_id ?? ''
  const exported = await api.json<object>(`/v1/traces/${trace_id}/export?scope=${encodeURIComponent(scope)}`)
  const opened = await openRecordings(JSON.stringify(exported))
  if (!opened.ok) throw new Error(opened.detail)
  const [trace] = opened.recordings.flatMap(tracesOf)
  if (!trace) throw new Error(`the trace ${trace_id} has no turn`)
  return { trace, ran: log.find(({ kind, status }) => kind === 'skill-applied' && status === 'ok')?.skill_id }
}

const measured = (trace: Trace | undefined) =>
  trace && { cost_usd: costOf(trace), model_calls: trace.usage.model_calls, tokens: trace.usage.tokens }

const textOf = (run: ReturnType<typeof measured>): string =>
  run ? `${run.model_calls} model calls, ${run.tokens} tokens, ${run.cost_usd.toFixed(5)} USD with its tools` : ''
