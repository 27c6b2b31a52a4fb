import type { Json, JsonFields } from '../../base/json.ts'
import type { Manifest, ValueType } from '../manifest/manifest.ts'
import { placesIn } from '../plan/template.ts'
import { withPath, type Path } from '../cel/expression.ts'

/** A value of a type, of which there are several. */
export function sampleOf(type: ValueType, number: number, name = 'sample'): Json {
  const text = `${name}-${number}`
  const values: Record<ValueType, Json> = {
    string: text,
    url: `https://example.com/${text}`,
    number: number + 0.5,
    integer: number,
    boolean: number % 2 === 1,
    list: [text],
    object: { name: text },
  }
  return values[type]
}

/** An output with all that the manifest's templates read of this step. */
export function sampleOutput(manifest: Manifest, index: number): Json {
  const { plan, signature } = manifest
  const names = new Set([plan.steps[index]?.name ?? String(index), String(index)])
  const typeOf = (template: Json): ValueType => {
    if (plan.steps.some(({ for_each }) => for_each?.list === template)) return 'list'
    const name = Object.keys(plan.result_map).find((output) => plan.result_map[output] === template)
    return signature.outputs.find((output) => output.name === name)?.type ?? 'string'
  }
  return placesRead(manifest).reduce<unknown>((output, { path, place }) => {
    const [root, part, step = '', ...rest] = path
    if (root !== 'work' || part !== 'steps' || !names.has(step)) return output
    return withPath(output, rest, sampleOf(typeOf(`{{${place}}}`), 1, rest.at(-1)))
  }, {}) as Json
}

/** The places on the blackboard that a run reads, with values. */
export function sampleBlackboard(manifest: Manifest): JsonFields {
  const { preconditions } = manifest
  const present = preconditions.data_present.filter((place) => place.includes('.')).map((place) => place.split('.'))
  const read = placesRead(manifest).map(({ path }) => path)
  return [...read, ...present].reduce<unknown>((blackboard, path) => {
    const isOwn = path[0] === 'inputs' || (path[0] === 'work' && (path[1] === 'steps' || path[1] === 'item'))
    return isOwn ? blackboard : withPath(blackboard, path, sampleOf('string', 1, path.at(-1)))
  }, {}) as JsonFields
}

function placesRead({ plan }: Manifest): { path: Path; place: string }[] {
  const lists = plan.steps.map(({ for_each }) => for_each?.list)
  const templates = [plan.idempotence_key, plan.result_map, ...lists, ...[...plan.steps, ...plan.compensation].map(({ args }) => args)]
  return templates.flatMap((template) => placesIn(template)).flatMap(({ path, place }) => (path === null ? [] : [{ path, place }]))
}
