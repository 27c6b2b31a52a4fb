import type { Result } from '../../base/result.ts'
import type { Json } from '../../base/json.ts'
import type { Compensation, Manifest, ManifestStep } from '../manifest/manifest.ts'
import { resolveTemplate, type TemplateScope } from './template.ts'

/**
 * A step as it runs. Its output can be named by `place`, its index in the manifest, and by `gives`.
 * A step with `for_each` is as many steps as its list may have items; `turn` counts them.
 */
export type CompiledStep = ManifestStep & { index: number; name: string; place: number; gives: string; turn: number | null }
/** `undoes` is the index of a step, or null for the plan as a whole. */
export type CompiledCompensation = Compensation & ItemOf & { index: number; undoes: number | null }

/** The list of a call and the number of its item; null without a list. */
export type ItemOf = Pick<ManifestStep, 'for_each'> & { turn: number | null }

/** All steps that a run may make, so that each has its own place in the journal and its own key. */
export function unrolledSteps({ steps }: Manifest['plan']): CompiledStep[] {
  const all = steps.flatMap((step, place): Omit<CompiledStep, 'index'>[] => {
    const gives = step.name ?? String(place)
    if (!step.for_each) return [{ ...step, place, gives, name: gives, turn: null }]
    return Array.from({ length: step.for_each.at_most }, (_, turn) => ({ ...step, place, gives, name: `${gives}.${turn}`, turn }))
  })
  return all.map((step, index): CompiledStep => ({ ...step, index }))
}

/** A compensation of a step that runs for each item undoes each of its calls by itself. */
export function unrolledCompensation(
  { compensation }: Manifest['plan'],
  steps: readonly CompiledStep[],
): CompiledCompensation[] | { lost: number } {
  const all: Omit<CompiledCompensation, 'index'>[] = []
  for (const [index, entry] of compensation.entries()) {
    const { step } = entry
    if (step === undefined) {
      all.push({ ...entry, undoes: null, turn: null })
      continue
    }
    const undone = steps.filter(({ gives, place }) => (typeof step === 'number' ? place === step : gives === step))
    if (undone.length === 0) return { lost: index }
    all.push(...undone.map(({ index: undoes, turn, for_each }) => ({ ...entry, undoes, turn, ...(for_each && { for_each }) })))
  }
  return all.map((entry, index) => ({ ...entry, index }))
}

/** `over`: the list has fewer items. `item` is undefined for a call without a list. */
export type ItemTurn = Result<{ item: Json | undefined; over: boolean }>

export function turnOf({ for_each, turn }: ItemOf, scope: TemplateScope): ItemTurn {
  if (!for_each || turn === null) return { ok: true, item: undefined, over: false }
  const resolved = resolveTemplate(for_each.list, scope, 'for_each.list')
  if (!resolved.ok) return { ok: false, detail: resolved.detail }
  const { value: list } = resolved
  if (!Array.isArray(list)) return { ok: false, detail: `for_each.list: ${for_each.list} is not a list` }
  if (list.length > for_each.at_most)
    return { ok: false, detail: `for_each.list: it has ${list.length} items; at most ${for_each.at_most} are allowed` }
  return { ok: true, item: list[turn], over: turn >= list.length }
}
