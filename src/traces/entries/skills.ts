import type { Counts } from './counts.ts'
import type { Kinds, TypedSkillEntry } from './kind.ts'
import { ended, inTurn, note, sample, textOf, turnOf, type SpanText, type Tally } from './kind.ts'

const skill = ({ skill_id, version }: TypedSkillEntry) => ({ 'gen_ai.skill.name': skill_id, 'reflex.skill.version': version })
const run = (entry: TypedSkillEntry) => ({ 'gen_ai.operation.name': 'invoke_workflow', ...skill(entry), 'reflex.run.id': entry['run_id'] })

export const skills = {
  'bulletin-built': {
    means: 'A turn got its bulletin of skills.',
    span: 'bulletin',
    said: ({ cards, tokens }) => ({
      name: 'bulletin',
      ends: 'ok',
      attributes: { 'reflex.bulletin.cards': cards, 'reflex.bulletin.tokens': tokens },
    }),
    counts: ({ cards, tokens, parent_id }, { record, add }) => {
      add('scope', '', { bulletins: 1, bulletin_tokens: typeof tokens === 'number' ? tokens : 0 })
      const turn = turnOf(record, parent_id)
      if (!turn || !Array.isArray(cards)) return
      turn.has_bulletin = true
      turn.first = textOf((cards[0] as { skill_id?: unknown } | undefined)?.skill_id) || null
    },
  },
  'blackboard-seeded': {
    means: 'A blackboard got its first values.',
    span: 'blackboard',
    said: ({ kind, revision, sources }) => blackboard(kind, { revision, sources }),
  },
  'blackboard-changed': {
    means: 'Values of a blackboard changed.',
    span: 'blackboard',
    said: ({ kind, revision, changes }) => blackboard(kind, { revision, changes }),
  },
  'skills-degraded': {
    means: 'The registry of skills is unavailable: the scope uses its copy.',
    span: 'note',
    said: ({ kind }) => note(kind),
  },
  'skills-restored': { means: 'The registry of skills is available again.', span: 'note', said: ({ kind }) => note(kind) },
  'skill-decided': {
    means: 'The gate decided on a proposal.',
    span: 'gate',
    said: (entry) => ({
      name: `gate ${String(entry['skill_id'])}`,
      ends: 'ok',
      attributes: { ...skill(entry), 'reflex.why': entry['why'], 'reflex.enforced': entry['enforced'], ...decisionOf(entry['decision']) },
    }),
    counts: (entry, context) => {
      if (entry.dry_run === true) return
      countDecision(entry, 1, context)
      if (entry.duration_ms !== null) context.add('scope', '', sample('gate_us', 1000 * entry.duration_ms))
    },
  },
  'skill-refused': {
    means: 'A proposal was refused before or after the gate.',
    span: 'gate',
    said: (entry) => {
      const of = { ...skill(entry), 'reflex.refused_for': entry['reason'] }
      if (entry['run_id'] !== undefined) return { kind: 'run', ends: 'error', attributes: { ...of, 'error.type': 'unknown' } }
      return { name: `gate ${String(entry['skill_id'])}`, ends: 'ok', attributes: of }
    },
    counts: (_entry, { add }) => add('scope', '', { skill_refusals: 1 }),
  },
  'skill-slots-parsed': {
    means: 'A parser filled missing inputs of a proposal.',
    span: 'gate',
    said: ({ attempts }) => ({ attributes: { 'reflex.slots': attempts } }),
    // The gate decides again with the parsed slots.
    counts: (entry, context) => countDecision({ ...entry, decision: { verdict: 'clarify' } }, -1, context),
  },
  'skill-guard-evaluated': {
    means: 'A guard of a plan was evaluated.',
    span: 'guard',
    said: ({ expression, outcome, probes }) => ({
      name: 'guard',
      ends: 'ok',
      attributes: { 'reflex.guard.expression': expression, 'reflex.guard.outcome': outcome, 'reflex.probes': probes },
    }),
  },
  'skill-started': {
    means: 'A run of a skill began.',
    span: 'run',
    said: (entry) => ({ ...runNamed(entry), begins: true, attributes: { ...run(entry), 'reflex.run.inputs': entry['inputs'] } }),
    counts: ({ skill_id, parent_id }, { record, add }) => {
      const id = textOf(skill_id)
      add('skill', id, { calls: 1 })
      const turn = turnOf(record, parent_id)
      if (turn) inTurn(turn, id).runs += 1
    },
  },
  'skill-resumed': {
    means: 'A run continued after a crash or an eviction.',
    span: 'run',
    said: (entry) => ({ ...runNamed(entry), begins: true, attributes: { ...run(entry), 'reflex.run.resumed': true } }),
  },
  'skill-reused': {
    means: 'The outputs of an earlier run answered a proposal.',
    span: 'run',
    said: (entry) => ({ ...runNamed(entry), ends: 'ok', attributes: { ...run(entry), 'reflex.run.status': 'reused' } }),
    counts: (entry, context) => endRun(entry, context, 'reused'),
  },
  'skill-applied': {
    means: 'A run ended.',
    span: 'run',
    said: (entry) => {
      const { status, reason, detail, outputs, cost_usd } = entry
      const ok = status === 'ok'
      const of = { ...run(entry), 'reflex.run.status': status, 'reflex.run.outputs': outputs, 'reflex.cost_usd': cost_usd }
      const failure = ok ? {} : { 'error.type': reason ?? status, 'error.message': detail }
      return { ...runNamed(entry), ends: ended(ok), attributes: { ...of, ...failure } }
    },
    counts: (entry, context) => endRun(entry, context, textOf(entry.status)),
  },
  'skill-step-ended': { means: 'A step of a run ended.', span: 'step', said: (entry) => stepSaid('step', entry) },
  'skill-compensation-ended': {
    means: 'A step of a run was undone.',
    span: 'compensation',
    said: (entry) => stepSaid('compensation', entry),
  },
  'approval-requested': {
    means: 'A run or a call waits for a person to decide.',
    span: 'approval',
    said: (entry) => ({
      name: `approval ${String(entry['skill_id'])}`,
      begins: true,
      attributes: { ...skill(entry), 'reflex.approval.id': entry['approval_id'], 'reflex.approval.reason': entry['reason'] },
    }),
    counts: ({ skill_id }, { add }) => add('skill', textOf(skill_id), { approvals: 1 }),
  },
  'approval-decided': {
    means: 'An approval was decided, or it expired.',
    span: 'approval',
    said: (entry) => ({
      name: `approval ${String(entry['skill_id'])}`,
      ends: ended(entry['status'] !== 'expired'),
      attributes: {
        'reflex.approval.status': entry['status'],
        'enduser.id': entry['by'],
        'reflex.approval.traceparent': entry['traceparent'],
        'reflex.approval.decision_reason': entry['reason'],
      },
    }),
  },
} satisfies Kinds

const runNamed = (entry: TypedSkillEntry) => ({ name: `invoke_workflow ${String(entry['skill_id'])}` }) as const

function blackboard(name: string, fields: Record<string, unknown>): SpanText {
  const attributes = Object.fromEntries(Object.entries(fields).map(([field, value]) => [`reflex.blackboard.${field}`, value]))
  return { name, ends: 'ok', attributes }
}

function stepSaid(kind: 'step' | 'compensation', entry: TypedSkillEntry): SpanText {
  const { step, index, tool: name, status, reason, error, cost_usd, attempts, undoes } = entry
  const ok = status === 'ok' || status === 'skipped'
  const of = { 'gen_ai.tool.name': name, 'reflex.step.index': index, 'reflex.step.status': status, 'reflex.step.attempts': attempts }
  const failure = ok ? {} : { 'error.type': reason ?? status, 'error.message': error }
  const more = kind === 'step' ? { 'reflex.cost_usd': cost_usd } : { 'reflex.step.undoes': undoes }
  return { name: `${kind} ${String(step ?? index)}`, ends: ended(ok), contains: true, attributes: { ...of, ...more, ...failure } }
}

function decisionOf(decision: unknown): Record<string, unknown> {
  const { verdict, stage, reason, score, to_pass } = (decision ?? {}) as Record<string, unknown>
  return { 'reflex.verdict': verdict, 'reflex.stage': stage, 'reflex.reason': reason, 'reflex.score': score, 'reflex.to_pass': to_pass }
}

type DecidedEntry = { skill_id?: unknown; decision?: unknown; parent_id: string | null }

function countDecision({ skill_id, decision, parent_id }: DecidedEntry, change: 1 | -1, { record, add }: Tally): void {
  const id = textOf(skill_id)
  const verdict = textOf((decision as { verdict?: unknown } | null)?.verdict)
  const counts: Counts<'scope'> & Counts<'skill'> = { proposals: change }
  if (verdict === 'clarify') counts.clarifies = change
  if (verdict === 'deny') counts.policy_denials = change
  add('skill', id, counts)
  add('scope', '', counts)
  const turn = turnOf(record, parent_id)
  // An approval is not a failure of the proposal.
  if (turn && verdict !== 'needs_approval') inTurn(turn, id).pending += change
}

type Ended = { skill_id?: unknown; cost_usd?: unknown; duration_ms: number | null; parent_id: string | null }

function endRun({ skill_id, cost_usd, duration_ms, parent_id }: Ended, { record, add }: Tally, status: string): void {
  const id = textOf(skill_id)
  const is_ok = status === 'ok' || status === 'reused'
  const streak = is_ok ? 0 : (record.streaks[id] ?? 0) + 1
  if (is_ok) delete record.streaks[id]
  else record.streaks[id] = streak
  add('skill', id, {
    [status === 'reused' ? 'reused' : is_ok ? 'ok' : 'failed']: 1,
    ...(streak > 0 && { max_streak: streak }),
    ...(typeof cost_usd === 'number' && { cost_usd }),
    ...(duration_ms !== null && sample('run_ms', duration_ms)),
  })
  const turn = turnOf(record, parent_id)
  if (!turn || !is_ok) return
  const known = inTurn(turn, id)
  known.ok += 1
  known.pending -= 1
}
