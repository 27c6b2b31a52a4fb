import { windowWarning } from '../../../../src/contract/lists/packs.ts'
import type { ModelCallReport } from '../../../../src/contract/reports/health.ts'
import type { ServerHealth } from '../../api/health.ts'
import { bytes, counted } from '../../ui/numbers.ts'
import { withTimes } from '../../ui/time.tsx'

export type Incident = { title: string; detail: string; tone: 'bad' | 'wait'; next?: { text: string; path: string } }

/** The platform's limit for one database, and for one object. */
export const MOST_BYTES = 10e9

type Found = Omit<Incident, 'tone'> & Partial<Pick<Incident, 'tone'>>

/** By what calls really did: the configuration says nothing of a provider that is away. */
function modelIncident({ status, last_answer_at, failing_since, failures, ...calls }: ModelCallReport): Found | null {
  if (failures === 0) return null
  const { scopes_failing, scopes_waiting, asks_at, error } = calls
  const waiting = scopes_waiting > 0
  const answer = last_answer_at === null ? 'It never answered.' : `The last answer was at ${last_answer_at}.`
  const asks = asks_at === null ? '' : ` The next one asks at ${asks_at}.`
  const detail =
    `${counted(failures, 'call')} failed since ${failing_since}, in ${counted(scopes_failing, 'scope')}; ` +
    `the events of ${scopes_waiting} wait for it. ${answer}${asks} ${error ?? ''}`
  return {
    title: status === 'silent' ? 'The model does not answer' : 'Some calls of the model fail',
    tone: status === 'silent' ? 'bad' : 'wait',
    detail: withTimes(detail),
    ...(waiting && { next: { text: 'Scopes that wait for the model', path: '/scopes?state=model' } }),
  }
}

const full = (name: string, held: number | null | undefined, remedy: string): Found | null =>
  (held ?? 0) <= 0.8 * MOST_BYTES
    ? null
    : { title: `${name} is nearly full`, detail: `It holds ${bytes(held ?? 0)} of ${bytes(MOST_BYTES)}: ${remedy}.` }

/** The faults of the system itself, worst first. */
export function incidentsOf(health: ServerHealth): Incident[] {
  const { database, queue, archive, parked, control_plane, deployment, model_error, skills, retention, ledger } = health
  const no_room = retention && windowWarning(retention, archive)
  const found: (Found | false | null | undefined | '')[] = [
    !database.ok && { title: 'D1 does not answer', detail: `${database.error}. Scopes work; lists and numbers are old.` },
    !queue.ok && { title: 'The queue does not answer', detail: `${queue.error}. Events are accepted by scopes directly.` },
    model_error !== null && { title: 'The model cannot be used', detail: model_error },
    health.model_calls && modelIncident(health.model_calls),
    deployment?.schema_error && { title: 'The tables in D1 do not fit this version', detail: deployment.schema_error },
    full('D1', deployment?.database_bytes, 'REFLEX_RETENTION_DAYS keeps it small'),
    full('The Ledger', ledger?.bytes, 'REFLEX_LEDGER_RETENTION_DAYS keeps it small'),
    (deployment?.bindings.missing.length ?? 0) > 0 && {
      title: 'The deployment lacks bindings',
      detail: deployment?.bindings.missing.join(', ') ?? '',
    },
    control_plane?.status === 'degraded' && {
      title: 'The control plane does not answer',
      detail: `${control_plane.url}: ${control_plane.error}. What it sent earlier is used.`,
    },
    archive && !archive.ok && { title: 'The archive does not answer', detail: `${archive.error}. Expired data is kept until it does.` },
    parked !== null &&
      parked.work > 0 && {
        title: `${parked.work} pieces of work are parked`,
        detail: `They crashed ${counted(parked.scopes, 'scope')} repeatedly, whose pages list them.`,
        next: { text: 'Scopes', path: '/scopes' },
      },
    (skills?.failed ?? 0) > 0 && {
      title: `${skills?.failed} versions of skills fail their tests`,
      detail: 'They cannot be promoted.',
      next: { text: 'Skills', path: '/skills' },
    },
    skills?.warning && {
      title: 'Many skills are active',
      tone: 'wait' as const,
      detail: skills.warning,
      next: { text: 'Skills', path: '/skills' },
    },
    ledger?.retention_days === null && { title: 'REFLEX_LEDGER_RETENTION_DAYS is invalid', detail: 'Nothing leaves the Ledger.' },
    retention && retention.days === null && { title: 'REFLEX_RETENTION_DAYS is invalid', detail: 'Nothing is deleted from D1.' },
    no_room && { title: 'D1 has no room for the events', tone: 'wait' as const, detail: `${no_room}.` },
    ...(deployment?.secrets ?? []).map(
      ({ name, problem }) =>
        problem !== null && {
          title: `The secret ${name}`,
          tone: 'wait' as const,
          detail: `${problem.charAt(0).toUpperCase()}${problem.slice(1)}.`,
        },
    ),
  ]
  return found.filter((incident) => typeof incident === 'object' && incident !== null).map((incident) => ({ tone: 'bad', ...incident }))
}
