/**
 * The place that a value comes from, as the platform found it. `text`: it stands only within a
 * longer text. `model`: it stands nowhere.
 */
export type Origin = { from: 'user' | 'manifest' | 'model' } | { from: 'event' | 'output' | 'setting' | 'text'; place: string }

/** A destination that no trusted origin names. `around`: the text in which it stands. */
export type Doubt = {
  argument: string
  value: string
  origin: string
  /** The tool or the type of events whose text it is. */
  in?: string
  around?: string
}

export const originModes = ['observe', 'ask', 'refuse'] as const
export type OriginMode = (typeof originModes)[number]

/** The mode of a deployment. A word that is none of the three asks: a mistake opens nothing. */
export function deploymentMode({ REFLEX_ORIGINS: said = 'observe' }: { REFLEX_ORIGINS?: string }): OriginMode {
  return originModes.find((mode) => mode === said) ?? 'ask'
}
