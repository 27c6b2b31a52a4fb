import type { FieldError } from '../../../src/base/check-json.ts'

/**
 * Checks a manifest as its registration does, but for tools and probes: which ones exist, the
 * deployment knows. Loaded on use, since the checks take longer to load than most commands to run.
 */
export async function manifestErrors(body: unknown): Promise<readonly FieldError[]> {
  const [{ parseManifest }, { checkManifest, expressionsOf }, { compileExpression }] = await Promise.all([
    import('../../../src/skills/manifest/manifest.ts'),
    import('../../../src/skills/check.ts'),
    import('../../../src/skills/cel/expression.ts'),
  ])
  const parsed = parseManifest(body)
  if (!parsed.ok) return parsed.errors
  const probes = expressionsOf(parsed.manifest).flatMap(({ source }) => {
    const compiled = compileExpression(source)
    return compiled.ok ? [...compiled.expression.functions] : []
  })
  const checked = checkManifest(parsed.manifest, { tools: null, probes })
  return checked.ok ? [] : checked.errors
}
