import { maskOf, type Mask } from '../gate/mask.ts'
import type { CompiledPlan } from '../plan/compile.ts'

const masks = new WeakMap<CompiledPlan, Mask>()

/** Made once for a plan: what it searches for takes longer to prepare than a step to be told of. */
export function planMask(plan: CompiledPlan): Mask {
  const known = masks.get(plan)
  if (known) return known
  const mask = maskOf(plan.manifest, plan.inputs)
  masks.set(plan, mask)
  return mask
}
