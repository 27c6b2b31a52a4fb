import type { ManifestError } from './check-manifest.ts'
import type { Manifest } from '../manifest/manifest.ts'

/** Whether what it does to the world can be repeated, undone and told. */
export function effectErrors({ plan, effects, signature }: Manifest): ManifestError[] {
  const errors: ManifestError[] = []
  if (effects.external.length > 0 && plan.idempotence_key === undefined) {
    errors.push({ path: 'plan.idempotence_key', message: 'is required where effects.external is not empty: a run may be repeated' })
  }
  if (effects.external.length > 0 && plan.compensation.length === 0) {
    errors.push({ path: 'plan.compensation', message: 'is required where effects.external is not empty: a run may fail halfway' })
  }
  for (const [name, path] of Object.entries(signature.blackboard_bindings.outputs)) {
    const at = `signature.blackboard_bindings.outputs.${name}`
    if (path.startsWith('policy.')) errors.push({ path: at, message: 'policy is not for skills to write' })
    if (path === 'work.steps' || path.startsWith('work.steps.')) errors.push({ path: at, message: 'work.steps holds what the steps gave' })
    if (!effects.writes.includes(path)) errors.push({ path: at, message: `${path} is not in effects.writes` })
  }
  return [...errors, ...stepErrors(plan)]
}

function stepErrors({ steps, compensation }: Manifest['plan']): ManifestError[] {
  const names = steps.map(({ name }) => name)
  const twice = names.flatMap((name, index) =>
    name !== undefined && names.indexOf(name) < index ? [{ path: `plan.steps.${index}.name`, message: `${name} stands there twice` }] : [],
  )
  const unknown = compensation.flatMap(({ step }, index) => {
    const isThere = step === undefined || (typeof step === 'number' ? step < steps.length : names.includes(step))
    return isThere
      ? []
      : [{ path: `plan.compensation.${index}.step`, message: `there is no step called ${step}: name one or give its index` }]
  })
  return [...twice, ...unknown]
}
