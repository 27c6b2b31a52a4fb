import type { Kinds } from './kind.ts'
import { ended, errorType, licenceOf, note } from './said.ts'
import { sample } from './tally.ts'

const reflex = ({ reflex_id, version }: { reflex_id: string; version: number | null }) => ({
  'reflex.id': reflex_id,
  'reflex.version': version,
})

/** Reflexes, and what is known of their decisions. */
export const reflexes = {
  'reflex-fired': {
    span: 'reflex',
    said: (entry) => ({
      name: `reflex ${entry.reflex_id}`,
      ends: 'ok',
      attributes: {
        ...reflex(entry),
        'reflex.state': entry.state,
        'reflex.fired': true,
        'reflex.action': entry.action,
        'reflex.fuel': entry.fuel,
        ...licenceOf(entry),
      },
    }),
    counts: ({ reflex_id, state, duration_us }, { add }) => {
      add('scope', '', sample('reflex_us', duration_us))
      if (state === 'shadow') return add('reflex', reflex_id, { runs: 1, shadow_fires: 1 })
      add('reflex', reflex_id, { runs: 1, fires: 1 })
      add('scope', '', { fires: 1 })
    },
  },
  'reflex-passed': {
    span: 'reflex',
    said: (entry) => {
      const { reason, error, fuel, state } = entry
      const ok = reason !== 'error' && reason !== 'limit' && reason !== 'invalid_action'
      const why = { 'reflex.pass_reason': reason, 'reflex.reason': entry.detail }
      const of = { ...reflex(entry), 'reflex.state': state, 'reflex.fired': false, ...why, 'reflex.fuel': fuel }
      const failure = { ...errorType(ok, reason), ...(error !== null && { 'error.message': error }) }
      return { name: `reflex ${entry.reflex_id}`, ends: ended(ok), attributes: { ...of, ...failure } }
    },
    counts: ({ reflex_id, reason, duration_us }, { add }) => {
      add('scope', '', sample('reflex_us', duration_us))
      add('reflex', reflex_id, { runs: 1, errors: reason === 'error' || reason === 'limit' || reason === 'invalid_action' ? 1 : 0 })
    },
  },
  'action-ended': {
    span: 'action',
    said: (entry) => {
      const ok = entry.status === 'ok' || entry.status === 'reused'
      const of = { ...reflex(entry), 'reflex.action.type': entry.action_type, 'reflex.action.status': entry.status }
      const failure = { ...errorType(ok, entry.status), ...(entry.error !== null && { 'error.message': entry.error }) }
      return { name: `action ${entry.action_type}`, ends: ended(ok), contains: true, attributes: { ...of, ...failure } }
    },
  },
  'reflex-compared': {
    span: 'shadow',
    said: (entry) => ({
      name: `compare ${entry.reflex_id}`,
      ends: 'ok',
      attributes: { ...reflex(entry), 'reflex.action': entry.action, 'reflex.decision': entry.decision, 'reflex.agreed': entry.agreed },
    }),
  },
  'reflex-audited': {
    span: 'shadow',
    said: (entry) => {
      const { own, decided, agreed, judged_by, by, reason } = entry
      const of = {
        ...reflex(entry),
        'reflex.action': own,
        'reflex.decision': decided,
        'reflex.agreed': agreed,
        'reflex.judged_by': judged_by,
      }
      return { name: `audit ${entry.reflex_id}`, ends: 'ok', attributes: { ...of, 'enduser.id': by, 'reflex.reason': reason } }
    },
    counts: ({ reflex_id, judged_by, agreed }, { add }) => {
      const counts =
        judged_by === 'audit' ? { audits: 1, audits_disagreed: agreed === false ? 1 : 0 } : { corrections: agreed === false ? 1 : 0 }
      add('reflex', reflex_id, counts)
      add('scope', '', counts)
    },
  },
  'decision-judged': {
    span: 'note',
    said: ({ kind, right, reply, reason, by }) =>
      note(kind, { 'reflex.agreed': right, 'enduser.id': by, 'reflex.reason': reason, 'gen_ai.output.messages': reply }),
  },
  'reflex-overruled': {
    span: 'note',
    said: (entry) => note(entry.kind, { ...reflex(entry), 'reflex.reason': entry.reason }),
    counts: ({ reflex_id }, { add }) => add('reflex', reflex_id, { overruled: 1 }),
  },
  'reflex-moved': {
    span: 'note',
    said: (entry) =>
      note(entry.kind, { ...reflex(entry), 'reflex.from': entry.from, 'reflex.to': entry.to, 'reflex.reason': entry.reason }),
    counts: ({ reflex_id, from, to }, { add }) => {
      if (from !== 'active' || to === 'active') return
      add('reflex', reflex_id, { evictions: 1 })
      add('scope', '', { evictions: 1 })
    },
    notices: ({ reflex_id, version, from, to, reason }) =>
      from === 'active' && to !== 'active' ? [{ type: 'reflex.demoted', data: { reflex_id, version, from, to, reason } }] : [],
  },
  'certificate-changed': {
    span: 'note',
    said: (entry) =>
      note(entry.kind, {
        ...reflex(entry),
        'reflex.change': entry.change,
        'reflex.event.type': entry.event_type,
        'reflex.reason': entry.reason,
      }),
  },
  'teacher-changed': {
    span: 'note',
    said: ({ kind, teacher, reason }) =>
      note(kind, { 'gen_ai.request.model': teacher.model, 'gen_ai.agent.version': teacher.agent_version, 'reflex.reason': reason }),
  },
  'scratch-set': {
    span: 'note',
    said: ({ kind, key, value, reflex_id }) =>
      note(kind, { 'reflex.id': reflex_id, 'reflex.scratch.key': key, 'reflex.scratch.value': value }),
  },
} satisfies Kinds
