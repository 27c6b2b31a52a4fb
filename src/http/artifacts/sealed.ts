import type { ReflexVersion } from '../../contract/reflex.ts'
import type { LookedUp } from '../../artifacts/look-up.ts'
import { forbidden } from '../problems/refusals.ts'

/** Refuses what would show the content, or what it does with inputs that the caller chooses. */
export function readable({ version, reads }: LookedUp<ReflexVersion>): ReflexVersion {
  if (reads) return version
  throw forbidden(
    `The reflex ${version.id}@${version.version} is for sale, so only its owner reads, copies or tries it. ` +
      'Buy a licence or a copy, or try a listing of it on your own recordings: POST /v1/market/listings/ID/try.',
  )
}
