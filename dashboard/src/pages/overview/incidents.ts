import type { Health } from '../../api/health.ts'

export type Incident = { title: string; detail: string; tone: 'bad' | 'wait'; next?: { text: string; path: string } }

type Found = Omit<Incident, 'tone'> & Partial<Pick<Incident, 'tone'>>

/** The faults of the system itself, worst first. */
export function incidentsOf(health: Health): Incident[] {
  const { database, queue, archive, parked, control_plane, deployment, model_error, skills, retention } = health
  const found: (Found | false | null | undefined | '')[] = [
    !database.ok && { title: 'D1 does not answer', detail: `${database.error}. Scopes keep working; lists and statistics are old.` },
    !queue.ok && { title: 'The queue does not answer', detail: `${queue.error}. Events are accepted by scopes directly.` },
    model_error !== null && { title: 'The model cannot be used', detail: model_error },
    deployment?.schema_error && { title: 'The tables in D1 do not fit this version', detail: deployment.schema_error },
    (deployment?.bindings.missing.length ?? 0) > 0 && {
      title: 'The deployment lacks bindings',
      detail: deployment?.bindings.missing.join(', ') ?? '',
    },
    control_plane?.status === 'degraded' && {
      title: 'The control plane does not answer',
      detail: `${control_plane.url}: ${control_plane.error}. The skills and policy that it sent earlier are used.`,
    },
    archive && !archive.ok && { title: 'The archive does not answer', detail: `${archive.error}. Expired data is kept until it does.` },
    parked !== null &&
      parked.work > 0 && {
        title: `${parked.work} pieces of work are parked`,
        detail: `They crashed their scope repeatedly, in ${parked.scopes} scopes. The page of each scope lists them.`,
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
    retention && retention.days === null && { title: 'REFLEX_RETENTION_DAYS is invalid', detail: 'Nothing is deleted from D1.' },
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
