import { checkJson } from '../../base/check-json.ts'
import { probeSession } from '../cel/expression.ts'
import { compatOutcome, preconditionsOutcome, type Facts, policyOutcome } from './outcomes.ts'
import {
  STAGES,
  type GateDecision,
  type GateRequest,
  type Need,
  type GateStage,
  type StageOutcome,
  type StageResult,
  type GateVerdict,
} from './decision.ts'
import { maskOf } from './mask.ts'
import { bindInputs } from '../plan/blackboard.ts'
import { questionFor } from '../plan/slots.ts'
import { cuesOf, scoreOf, tauOf, type ScoreName } from '../bulletin/score.ts'

/**
 * Decides if a skill may run: compat → preconditions → score ≥ τ → policy.
 *
 * 1. The order is fixed, and the decision stops at the first stage that fails.
 * 2. The same request gives the same decision; with the recorded probe calls it can be repeated
 *    from the log.
 * 3. An expression that cannot be evaluated refuses; no manifest or input makes it throw.
 * 4. The decision explains itself: the checks, and the changes that would let it pass. It contains
 *    no value of a secret slot and nothing that looks like a secret.
 */
export function decide(request: GateRequest): GateDecision {
  const json = checkJson(request.inputs)
  if (!json.ok) return notJson(request, `the inputs are not plain JSON: ${json.error.message}`)
  const facts = factsOf(request)
  const decision: Deciding = { request, facts, results: [], score: null }

  const compat = compatOutcome(request.manifest, request.compat)
  if (!passes(decision, 'compat', compat)) return ended(decision, { verdict: 'refused', needs: compat.needs })

  const preconditions = preconditionsOutcome(request, facts)
  if (!passes(decision, 'preconditions', preconditions)) {
    const asks = preconditions.needs.every(({ need }) => need === 'slot')
    return ended(decision, { verdict: asks ? 'clarify' : 'refused', needs: preconditions.needs })
  }

  const score = scoreOutcome(request)
  decision.score = score.score
  if (!passes(decision, 'score', score)) return ended(decision, { verdict: 'refused', needs: score.needs })

  const policy = policyOutcome(request, facts)
  passes(decision, 'policy', policy)
  return ended(decision, policy)
}

type Deciding = { request: GateRequest; facts: Facts; results: StageResult[]; score: GateDecision['score'] }

/** The parts of a request that every stage reads. */
export function factsOf({ manifest, inputs, blackboard, probes, recorded }: GateRequest): Facts {
  const bound = bindInputs(manifest, inputs, blackboard)
  const mask = maskOf(manifest, bound.inputs)
  const session = probeSession({ probes, recorded, hide: (value) => mask.value(value) })
  return { bound, mask, session, scope: { ...blackboard, inputs: bound.inputs, args: bound.inputs } }
}

function passes(decision: Deciding, stage: GateStage, { checks, needs }: StageOutcome): boolean {
  const passed = needs.length === 0
  decision.results.push({ stage, status: passed ? 'passed' : 'failed', checks })
  return passed
}

function ended({ request, facts, results, score }: Deciding, { verdict, needs }: { verdict: GateVerdict; needs: Need[] }): GateDecision {
  const failed = results.find(({ status }) => status === 'failed')
  const to_pass = needs.map(({ message }) => message)
  const asks = verdict === 'clarify'
  return {
    ...headOf(request),
    verdict,
    stage: failed?.stage ?? null,
    reason: failed ? `${failed.stage}: ${to_pass.join('; ')}` : 'all stages passed',
    stages: withUnreached(results),
    score,
    needs,
    to_pass,
    questions: asks ? facts.bound.missing.map(questionFor) : [],
    parsable: needs.flatMap((need) => (need.need === 'slot' && need.parsable ? [need.slot] : [])),
    probes: facts.session.calls,
  }
}

function notJson(request: GateRequest, message: string): GateDecision {
  const failed: StageResult = { stage: 'preconditions', status: 'failed', checks: [{ check: 'json', passed: false, detail: message }] }
  return {
    ...headOf(request),
    verdict: 'refused',
    stage: 'preconditions',
    reason: `preconditions: ${message}`,
    stages: withUnreached([failed]),
    score: null,
    needs: [{ need: 'json', message }],
    to_pass: [message],
    questions: [],
    parsable: [],
    probes: [],
  }
}

const headOf = ({ manifest: { id, version }, now }: GateRequest) => ({ skill_id: id, version, decided_at: now })

const withUnreached = (results: readonly StageResult[]): StageResult[] =>
  STAGES.map((stage) => results.find((result) => result.stage === stage) ?? { stage, status: 'not_reached', checks: [] })

type ScoreOutcome = StageOutcome & { score: NonNullable<GateDecision['score']> }

function scoreOutcome(request: GateRequest): ScoreOutcome {
  const { manifest, recent_success, default_tau_ratio, named = false } = request
  const { score, components } = scoreOf(manifest, cuesOf(request), recent_success)
  const tau = tauOf(manifest, default_tau_ratio)
  const passed = named || score >= tau
  const detail = `${named ? 'a contract names the skill; ' : ''}${score} of ${tau} points: ${components.map(({ name, weight, hit }) => `${name} ${hit ? weight : `0 of ${weight}`}`).join(', ')}`
  const cues = components.filter(({ hit, weight }) => !hit && weight > 0).map(({ name }) => name)
  const short_by = tau - score
  const message = `Score ${score}, needs ${tau}. ${hintOf(request, cues)}`
  const needs: Need[] = passed ? [] : [{ need: 'score', short_by, cues, message }]
  return { checks: [{ check: 'score', passed, detail }], needs, score: { score, tau, components } }
}

const MOST_WORDS = 5

function hintOf({ manifest: { activation }, why_counts }: GateRequest, cues: readonly ScoreName[]): string {
  const { keywords_any, goal_labels, entity_types } = activation
  const words = some(keywords_any)
  const ways: Partial<Record<ScoreName, string>> = {
    ...(keywords_any.length > 0 && {
      keyword_hit:
        why_counts !== false ? `use a keyword in \`why\` (${words})` : `a keyword must be in the event or the conversation (${words})`,
    }),
    ...(goal_labels.length > 0 && { goal_label: `set goal_labels: ${JSON.stringify(goal_labels.slice(0, MOST_WORDS))}` }),
    ...(entity_types.length > 0 && { entity_type: `name an entity of the type ${some(entity_types)}` }),
    recent_success: 'run it with success, which counts for a while',
  }
  const hint = cues.flatMap((cue) => ways[cue] ?? []).join(' or ')
  return hint === '' ? 'No cue of this skill adds more: its tau is too high.' : `${hint[0]?.toUpperCase()}${hint.slice(1)}.`
}

const some = (words: readonly string[]): string => words.slice(0, MOST_WORDS).join(', ')
