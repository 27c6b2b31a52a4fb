import type { LogEntry, SkillEntryKind } from '../contract/log-entry.ts'
import { ended, note, type Said } from './said.ts'

/** The fields of a session's entries are as the session writes them. */
type Loose = LogEntry & { readonly [field: string]: unknown }

const skill = ({ skill_id, version }: Loose) => ({ 'gen_ai.skill.name': skill_id, 'reflex.skill.version': version })
const run = (entry: Loose) => ({ 'gen_ai.operation.name': 'invoke_workflow', ...skill(entry), 'reflex.run.id': entry['run_id'] })

export const skillDescribers: Record<SkillEntryKind, (entry: Loose) => Said> = {
  'bulletin-built': ({ cards, tokens }) => ({
    name: 'bulletin',
    ends: 'ok',
    attributes: { 'reflex.bulletin.cards': cards, 'reflex.bulletin.tokens': tokens },
  }),
  'blackboard-seeded': ({ kind, revision, sources }) => blackboard(kind, { revision, sources }),
  'blackboard-changed': ({ kind, revision, changes }) => blackboard(kind, { revision, changes }),
  'skills-degraded': ({ kind }) => note(kind),
  'skills-restored': ({ kind }) => note(kind),
  'skill-decided': (entry) => ({
    name: `gate ${String(entry['skill_id'])}`,
    ends: 'ok',
    attributes: { ...skill(entry), 'reflex.why': entry['why'], 'reflex.enforced': entry['enforced'], ...decisionOf(entry['decision']) },
  }),
  'skill-refused': (entry) => {
    const of = { ...skill(entry), 'reflex.refused_for': entry['reason'] }
    if (entry['run_id'] !== undefined) return { kind: 'run', ends: 'error', attributes: { ...of, 'error.type': 'unknown' } }
    return { name: `gate ${String(entry['skill_id'])}`, ends: 'ok', attributes: of }
  },
  'skill-slots-parsed': ({ attempts }) => ({ attributes: { 'reflex.slots': attempts } }),
  'skill-guard-evaluated': ({ expression, outcome, probes }) => ({
    name: 'guard',
    ends: 'ok',
    attributes: { 'reflex.guard.expression': expression, 'reflex.guard.outcome': outcome, 'reflex.probes': probes },
  }),
  'skill-started': (entry) => ({ ...runNamed(entry), begins: true, attributes: { ...run(entry), 'reflex.run.inputs': entry['inputs'] } }),
  'skill-resumed': (entry) => ({ ...runNamed(entry), begins: true, attributes: { ...run(entry), 'reflex.run.resumed': true } }),
  'skill-reused': (entry) => ({ ...runNamed(entry), ends: 'ok', attributes: { ...run(entry), 'reflex.run.status': 'reused' } }),
  'skill-applied': (entry) => {
    const { status, reason, detail, outputs, cost_usd } = entry
    const ok = status === 'ok'
    const of = { ...run(entry), 'reflex.run.status': status, 'reflex.run.outputs': outputs, 'reflex.cost_usd': cost_usd }
    const failure = ok ? {} : { 'error.type': reason ?? status, 'error.message': detail }
    return { ...runNamed(entry), ends: ended(ok), attributes: { ...of, ...failure } }
  },
  'skill-step-ended': (entry) => stepSaid('step', entry),
  'skill-compensation-ended': (entry) => stepSaid('compensation', entry),
  'approval-requested': (entry) => ({
    name: `approval ${String(entry['skill_id'])}`,
    begins: true,
    attributes: { ...skill(entry), 'reflex.approval.id': entry['approval_id'], 'reflex.approval.reason': entry['reason'] },
  }),
  'approval-decided': (entry) => ({
    name: `approval ${String(entry['skill_id'])}`,
    ends: ended(entry['status'] !== 'expired'),
    attributes: {
      'reflex.approval.status': entry['status'],
      'enduser.id': entry['by'],
      'reflex.approval.traceparent': entry['traceparent'],
      'reflex.approval.decision_reason': entry['reason'],
    },
  }),
}

const runNamed = (entry: Loose) => ({ name: `invoke_workflow ${String(entry['skill_id'])}` }) as const

function blackboard(name: string, fields: Record<string, unknown>): Said {
  const attributes = Object.fromEntries(Object.entries(fields).map(([field, value]) => [`reflex.blackboard.${field}`, value]))
  return { name, ends: 'ok', attributes }
}

function stepSaid(kind: 'step' | 'compensation', entry: Loose): Said {
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
