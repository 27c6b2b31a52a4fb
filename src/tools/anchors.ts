import type { Anchor } from '../contract/settings/anchors.ts'
import { matchesScope } from '../contract/scope-pattern.ts'

const plain = (text: string): string => text.normalize('NFKC').trim().toLowerCase()

/** The names of the anchors that a call with this input touches. */
export function anchorsTouched(anchors: readonly Anchor[] = [], { tool, input }: { tool: string; input: unknown }): string[] {
  const asking = anchors.filter(({ tools }) => !tools || tools.some((pattern) => matchesScope(pattern, tool)))
  if (asking.length === 0) return []
  const values = Array.from(new Set(valuesIn(input)), plain)
  const touches = ({ match }: Anchor) => match.map(plain).some((pattern) => values.some((value) => matchesScope(pattern, value)))
  return asking.filter(touches).map(({ name }) => name)
}

/** A call that a person was asked about instead. */
export class AwaitsPerson extends Error {
  override readonly name = 'AwaitsPerson'
}

export const whyAnchored = (names: readonly string[]): string =>
  `waits for a person: touches ${names.map((name) => `the anchor ${name}`).join(' and ')}`

function* valuesIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value
  else if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') yield String(value)
  else if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) yield* valuesIn(inner)
}
