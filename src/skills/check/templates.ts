import type { ManifestError } from './check-manifest.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { placesIn, type Place } from '../plan/template.ts'

/** Whether what stands between braces in arguments, in the idempotency key and in the results can ever be filled. */
export function templateErrors(manifest: Manifest): ManifestError[] {
  const { plan } = manifest
  const count = plan.steps.length
  return [
    ...errorsIn(manifest, { value: plan.idempotence_key, path: 'plan.idempotence_key', steps_before: 0, shown: true }),
    ...plan.steps.flatMap(({ args }, index) => errorsIn(manifest, { value: args, path: `plan.steps.${index}.args`, steps_before: index })),
    ...plan.compensation.flatMap(({ args }, index) =>
      errorsIn(manifest, { value: args, path: `plan.compensation.${index}.args`, steps_before: count }),
    ),
    ...errorsIn(manifest, { value: plan.result_map, path: 'plan.result_map', steps_before: count, shown: true }),
  ]
}

/** `shown`: what comes out is told to the model or kept, so that no secret may be in it. */
type Template = { value: unknown; path: string; steps_before: number; shown?: boolean }

function errorsIn(manifest: Manifest, { value, path, steps_before, shown = false }: Template): ManifestError[] {
  return placesIn(value).flatMap((place) => {
    const message = wrongWith(place, manifest, { steps_before, shown })
    return message === null ? [] : [{ path: place.at === '' ? path : `${path}.${place.at}`, message }]
  })
}

function wrongWith(
  { place, path }: Place,
  manifest: Manifest,
  { steps_before, shown }: { steps_before: number; shown: boolean },
): string | null {
  if (!path) return `{{${place}}} is no place: write an input's name or a path such as work.image_tag`
  const [root, name = '', step] = path
  if (root === 'inputs') {
    const input = manifest.signature.inputs.find((candidate) => candidate.name === name)
    if (!input) return `{{${place}}} is neither an input nor a path on the blackboard (ctx., env., work., policy.)`
    return input.secret && shown ? `{{${place}}} is secret and must not be in it` : null
  }
  if (root !== 'work' || name !== 'steps') return null
  const before = manifest.plan.steps.slice(0, steps_before)
  if (before.some((candidate, index) => candidate.name === step || String(index) === step)) return null
  return `{{${place}}}: there is no earlier step called ${step ?? '(nothing)'}`
}
