import { saltedMask } from '../../traces/keyed-hash.ts'
import type { Checked, Standing } from './verify.ts'

/** A place of a masked value in the log. `whole`: the field is the mask, which no text quotes. */
type MaskedAt = { scope: string; seq: number; kind: string; field: string; whole: boolean; signed: boolean }

const SIGNED: ReadonlySet<Standing> = new Set(['signed', 'partly'])

/**
 * The places of a checked receipt whose mask stands for the value. The salt came from the
 * deployment: nobody finds another value that has the same mask.
 */
export function provenAt({ scopes }: Checked, { value, salt }: { value: unknown; salt: string }): MaskedAt[] {
  const mask = saltedMask(salt, value)
  return scopes.flatMap(({ scope, standing, recording }) =>
    recording.entries.flatMap((entry) => {
      const { seq, kind } = entry
      const signed = SIGNED.has(standing.get(seq) ?? 'unsigned')
      const quoting = Array.from(textsIn(entry, '')).filter(({ text }) => text.includes(mask))
      return quoting.map(({ field, text }) => ({ scope, seq, kind, field, whole: text === mask, signed }))
    }),
  )
}

function* textsIn(value: unknown, field: string): Generator<{ field: string; text: string }> {
  if (typeof value === 'string') yield { field, text: value }
  else if (typeof value === 'object' && value !== null)
    for (const [name, inner] of Object.entries(value)) yield* textsIn(inner, field === '' ? name : `${field}.${name}`)
}
