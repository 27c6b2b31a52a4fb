import { activationErrors } from './activation.ts'
import { effectErrors } from './effects.ts'
import { expressionErrors } from './expressions.ts'
import { signatureErrors } from './signature.ts'
import { templateErrors } from './templates.ts'
import { toolErrors } from './tools.ts'
import type { Manifest } from '../manifest/manifest.ts'

export type ManifestError = { path: string; message: string }
export type ManifestCheck = { ok: true } | { ok: false; errors: ManifestError[] }

export type CheckOptions = {
  /** The tools that there are; null where that is not known. */
  tools: readonly string[] | null
  /** The functions that expressions may call. */
  probes: readonly string[]
  /** The names in `env` that an expression may start with. Where they are not known, such a name is decided when it is evaluated. */
  env_names?: readonly string[] | null
}

/** What the schema cannot say of a manifest: whether its parts fit together. All errors at once, each with its place. */
export function checkManifest(manifest: Manifest, options: CheckOptions): ManifestCheck {
  const errors = [
    ...signatureErrors(manifest),
    ...templateErrors(manifest),
    ...toolErrors(manifest, options.tools),
    ...expressionErrors(manifest, options),
    ...effectErrors(manifest),
    ...activationErrors(manifest),
  ]
  return errors.length === 0 ? { ok: true } : { ok: false, errors }
}
