import type { Entry } from './read-log.ts'
import { APP, COMMIT, SKILLS } from './set-up.ts'

/** A claim of the example, the evidence in the log, and whether it holds. */
export type Step = { title: string; shown: string[]; holds: boolean }

const IMAGE = `acmeregistry.example/payments:${COMMIT}`
export const ENDPOINT = `https://${APP}.azurewebsites.net`

/** The eight steps of the example, each read from the log alone. */
export function eightSteps(log: readonly Entry[]): Step[] {
  return [seeded(log), told(log), ensured(log), built(log), asked(log), gated(log), deployed(log), recorded(log)]
}

function seeded(log: readonly Entry[]): Step {
  const sources = log.find(({ kind }) => kind === 'blackboard-seeded')?.sources ?? {}
  const places = Object.entries(sources).map(([path, source]) => `${path} from ${source}`)
  return {
    title: 'The turn starts, and the blackboard is seeded.',
    shown: [places.join(', ')],
    holds: 'ctx.subscription' in sources && 'env.az' in sources,
  }
}

function told(log: readonly Entry[]): Step {
  const cards = log.find(({ kind }) => kind === 'bulletin-built')?.cards ?? []
  return {
    title: 'The bulletin shows the model three skills.',
    shown: cards.map(({ skill_id, score, tokens }) => `${skill_id}, score ${score}, ${tokens} tokens`),
    holds: SKILLS.every((id) => cards.some(({ skill_id, tokens }) => skill_id === id && tokens <= 120)) && cards.length === SKILLS.length,
  }
}

function ensured(log: readonly Entry[]): Step {
  const create = log.find(({ kind, skill_id, step }) => kind === 'skill-step-ended' && skill_id === 'ensure_acr' && step === 'create')
  return {
    title: 'It proposes ensure_acr; the gate approves, and the plan has nothing to do: the registry is there.',
    shown: [decisionLine(log, 'ensure_acr'), ...stepLines(log, 'ensure_acr')],
    holds: isAllowed(log, 'ensure_acr') && isApplied(log, 'ensure_acr') && create?.status === 'skipped',
  }
}

function built(log: readonly Entry[]): Step {
  const image_tag = applied(log, 'docker_build_and_push')?.outputs?.['image_tag']
  return {
    title: 'It proposes docker_build_and_push; the result has the image.',
    shown: [decisionLine(log, 'docker_build_and_push'), ...stepLines(log, 'docker_build_and_push'), `image_tag ${String(image_tag)}`],
    holds: isAllowed(log, 'docker_build_and_push') && image_tag === IMAGE,
  }
}

function asked(log: readonly Entry[]): Step {
  const replies = log.filter(({ kind }) => kind === 'reply-sent').map(({ content }) => String(content))
  return {
    title: 'It asks which app, and the user answers.',
    shown: [`model  ${replies[0] ?? ''}`, `user   ${APP}`],
    holds: replies.length > 1 && /\?/.test(replies[0] ?? '') && !replies[0]?.includes('<CLARIFY>'),
  }
}

function gated(log: readonly Entry[]): Step {
  const decision = decisionOn(log, 'deploy.container.appservice')
  const checks = decision?.stages.find(({ stage }) => stage === 'preconditions')?.checks ?? []
  const invariants = checks.filter(({ check }) => check.startsWith('invariant'))
  const probes = decision?.probes ?? []
  return {
    title: 'It proposes deploy.container.appservice; the gate checks the subscription and the window.',
    shown: [
      decisionLine(log, 'deploy.container.appservice'),
      ...invariants.map(({ check, detail }) => `${check}: ${detail}`),
      ...probes.map(
        ({ probe, args, result }) => `${probe}(${args.map((arg) => JSON.stringify(arg)).join(', ')}) is ${JSON.stringify(result)}`,
      ),
    ],
    holds:
      decision?.verdict === 'allow' &&
      invariants.length === 2 &&
      invariants.every(({ passed }) => passed) &&
      ['deploy_window', 'risk_scan'].every((name) => probes.some(({ probe }) => probe === name)),
  }
}

function deployed(log: readonly Entry[]): Step {
  const outcome = applied(log, 'deploy.container.appservice')
  return {
    title: 'The plan deploys, the smoke test is good, and the result has the endpoint.',
    shown: [...stepLines(log, 'deploy.container.appservice'), `endpoint ${String(outcome?.outputs?.['endpoint'])}`],
    holds: outcome?.status === 'ok' && outcome.outputs?.['endpoint'] === ENDPOINT,
  }
}

/**
 * The input of a skill miner: the same calls in the same order, trace after trace, with their
 * costs.
 */
function recorded(log: readonly Entry[]): Step {
  const effects = log.filter(({ kind }) => kind === 'effect-ended')
  const models = log.filter(({ kind }) => kind === 'model-called')
  const tokens = models.reduce((sum, { usage }) => sum + (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0), 0)
  const cost = log.filter(({ kind }) => kind === 'skill-applied').reduce((sum, { cost_usd = 0 }) => sum + cost_usd, 0)
  const traces = new Set(effects.map(({ trace_id }) => trace_id))
  return {
    title: 'The log has the decisions, the timings and the costs: the trace that a miner reads.',
    shown: [
      ...Array.from(traces, (trace) => traceLine(trace, effects)),
      `${models.length} model calls, ${tokens} tokens; the skills' tools cost ${cost} USD`,
    ],
    holds: traces.size === 2 && effects.every(({ duration_ms }) => duration_ms !== null) && tokens > 0 && cost > 0,
  }
}

const traceLine = (trace: string, effects: readonly Entry[]): string =>
  `trace ${trace.slice(0, 8)}: ${effects
    .filter(({ trace_id }) => trace_id === trace)
    .map(({ tool, duration_ms }) => `${tool} ${duration_ms} ms`)
    .join(' → ')}`

const decisionOn = (log: readonly Entry[], id: string) =>
  log.find(({ kind, skill_id }) => kind === 'skill-decided' && skill_id === id)?.decision
const applied = (log: readonly Entry[], id: string) => log.find(({ kind, skill_id }) => kind === 'skill-applied' && skill_id === id)
const isAllowed = (log: readonly Entry[], id: string): boolean => decisionOn(log, id)?.verdict === 'allow'
const isApplied = (log: readonly Entry[], id: string): boolean => applied(log, id)?.status === 'ok'

function decisionLine(log: readonly Entry[], id: string): string {
  const decision = decisionOn(log, id)
  if (!decision) return `${id} was not decided on`
  const stages = decision.stages.map(({ stage, status }) => `${stage} ${status}`).join(', ')
  return `gate: ${decision.verdict} (${stages}; score ${decision.score?.score} of ${decision.score?.tau} needed)`
}

const stepLines = (log: readonly Entry[], id: string): string[] =>
  log
    .filter(({ kind, skill_id }) => kind === 'skill-step-ended' && skill_id === id)
    .map(({ step, tool, status, duration_ms }) => `${step}: ${tool} ${status}${status === 'skipped' ? '' : `, ${duration_ms} ms`}`)
